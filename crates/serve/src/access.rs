//! Access to a part, local or remote.

mod targets;

use std::borrow::Cow;
use std::sync::Arc;

use gnarl_common::{Context, Error, Result};
use gnarl_graph::{Labels, Triple};
use gnarl_sample::parts::NeighborService;
use gnarl_store::Rows;

use crate::codec::{labels_of, rows_of, splits_of, times_of};
use crate::command::Column;
use crate::remote::{RemoteEdges, RemotePart};
use crate::served::{Description, ServedPart};

/// Access to a part.
#[derive(Clone)]
pub enum PartAccess {
    /// Memory-mapped files of this machine.
    Local(Arc<ServedPart>),
    /// A server.
    Remote(RemotePart),
}

impl PartAccess {
    /// Returns whether the part is local.
    pub fn is_here(&self) -> bool {
        matches!(self, Self::Local(_))
    }

    /// Describes the part's columns of each node type.
    ///
    /// # Errors
    /// If its server does not reply.
    pub fn describe(&self) -> Result<Vec<Description>> {
        match self {
            Self::Local(part) => Ok(part.describe()),
            Self::Remote(part) => part.describe(),
        }
    }

    /// The part's sampling service over the edges of a type, or of the only one.
    ///
    /// # Errors
    /// If the part is local and has no such type.
    pub fn neighbors(&self, etype: Option<&Triple>) -> Result<Arc<dyn NeighborService>> {
        Ok(match (self, etype) {
            (Self::Local(part), _) => Arc::new(part.neighbors(etype)?.clone()),
            (Self::Remote(part), None) => Arc::new(part.clone()),
            (Self::Remote(part), Some(etype)) => {
                Arc::new(RemoteEdges { part: part.clone(), etype: etype.clone() })
            }
        })
    }

    /// Dense features of all own nodes of a type, in the order of their new ids.
    ///
    /// # Errors
    /// If there is no such type or there are no such features, or the server does not send them.
    pub(crate) fn all_features(&self, ntype: &str, width: usize) -> Result<Vec<f32>> {
        let batches = match self {
            Self::Local(part) => {
                part.stretch(Some(ntype), Column::Features, 0, u64::MAX)?.into_iter().collect()
            }
            Self::Remote(part) => part.whole(Some(ntype), Column::Stored)?,
        };
        match rows_of(&batches)? {
            Rows::Dense(rows) if rows.len() % width.max(1) == 0 => Ok(rows),
            Rows::Dense(_) => Err(Error::invalid(format!("expected features of width {width}"))),
            Rows::Sparse { .. } => {
                Err(Error::invalid("expected dense features, found sparse ones"))
            }
        }
    }

    /// Labels of own nodes of the type of `about`, by dataset ids; nodes must have labels.
    ///
    /// # Errors
    /// If a node is not the part's own, or the server does not send as many labels.
    pub fn labels(&self, about: &Description, nodes: &[u64]) -> Result<Labels> {
        let ntype = Some(&*about.ntype);
        let read = || {
            let batches = match self {
                Self::Local(part) => vec![part.gather(ntype, Column::Label, nodes)?],
                Self::Remote(part) => part.labels(ntype, nodes)?,
            };
            let labels = labels_of(&batches, about.outputs)?;
            let found = match &labels {
                Labels::Single { classes, .. } => classes.len(),
                Labels::Multi { values, tasks } => values.len() / tasks,
                Labels::Values { values } => values.len(),
            };
            expect(found as u64, nodes.len() as u64).map(|()| labels)
        };
        read().while_doing(|| format!("reading labels of part {}", about.part))
    }

    /// The splits of own nodes of the type of `about`, by the codes of [`Column::Split`].
    ///
    /// # Errors
    /// If the server does not send them, or not as many as described.
    pub fn splits(&self, about: &Description) -> Result<Cow<'_, [u8]>> {
        let part = match self {
            Self::Local(part) => return part.splits(Some(&about.ntype)).map(Cow::Borrowed),
            Self::Remote(part) => part,
        };
        let splits = splits_of(&part.whole(Some(&about.ntype), Column::Split)?)?;
        expect(splits.len() as u64, about.nodes)
            .while_doing(|| format!("reading splits of part {}", about.part))?;
        Ok(splits.into())
    }

    /// Times of own nodes of the type of `about`, in the order of their new ids, if nodes have some.
    ///
    /// # Errors
    /// If the server does not send them, or not as many as described.
    pub fn times(&self, about: &Description) -> Result<Option<Cow<'_, [i64]>>> {
        let part = match self {
            Self::Local(part) => {
                return Ok(part.times(Some(&about.ntype))?.map(Cow::Borrowed));
            }
            Self::Remote(part) => part,
        };
        if !about.columns.iter().any(|name| name == Column::Time.name()) {
            return Ok(None);
        }
        let times = times_of(&part.whole(Some(&about.ntype), Column::Time)?)?;
        expect(times.len() as u64, about.nodes)
            .while_doing(|| format!("reading times of part {}", about.part))?;
        Ok(Some(times.into()))
    }
}

fn expect(found: u64, nodes: u64) -> Result<()> {
    if found == nodes {
        return Ok(());
    }
    Err(Error::invalid(format!("expected {nodes} values, one per node; found {found}")))
}
