//! A part, wherever it is.

use std::sync::Arc;

use gnarl_common::{Context, Error, Result};
use gnarl_graph::Labels;
use gnarl_sample::parts::NeighborService;
use gnarl_store::Rows;

use crate::codec::{labels_of, rows_of, splits_of};
use crate::command::Column;
use crate::held::{Description, HeldPart};
use crate::remote::RemotePart;

/// How a part is reached.
#[derive(Clone)]
pub enum PartAccess {
    /// In files of this machine.
    Local(Arc<HeldPart>),
    /// Through a server.
    Remote(RemotePart),
}

impl PartAccess {
    /// Whether it is read without asking a server.
    pub fn is_here(&self) -> bool {
        matches!(self, Self::Local(_))
    }

    /// What it has of each node type.
    ///
    /// # Errors
    /// If its server does not say.
    pub fn describe(&self) -> Result<Vec<Description>> {
        match self {
            Self::Local(part) => Ok(part.describe()),
            Self::Remote(part) => part.describe(),
        }
    }

    /// What draws its neighbours.
    ///
    /// # Errors
    /// If it is here, of a graph with types.
    pub fn neighbors(&self) -> Result<Arc<dyn NeighborService>> {
        Ok(match self {
            Self::Local(part) => Arc::new(part.counters()?),
            Self::Remote(part) => Arc::new(part.clone()),
        })
    }

    /// Dense feature rows of all its own nodes of a type, in the order of their new ids.
    ///
    /// # Errors
    /// If there is no such type or there are no such rows, or its server does not give them.
    pub(crate) fn all_features(&self, ntype: &str, width: usize) -> Result<Vec<f32>> {
        let batches = match self {
            Self::Local(part) => {
                part.stretch(Some(ntype), Column::Features, 0, u64::MAX)?.into_iter().collect()
            }
            Self::Remote(part) => part.whole(Some(ntype), Column::Features)?,
        };
        match rows_of(&batches)? {
            Rows::Dense(rows) if rows.len() % width.max(1) == 0 => Ok(rows),
            Rows::Dense(_) => Err(Error::invalid(format!("rows came that are not {width} wide"))),
            Rows::Sparse { .. } => Err(Error::invalid("sparse rows came instead of dense ones")),
        }
    }

    /// Labels of its own nodes, in the order of their new ids, if nodes have labels.
    ///
    /// # Errors
    /// If its server does not give them, or not as many as described.
    pub fn labels(&self, about: &Description) -> Result<Option<Labels>> {
        let part = match self {
            Self::Local(part) => return Ok(part.labels()?.cloned()),
            Self::Remote(part) => part,
        };
        if about.outputs == 0 {
            return Ok(None);
        }
        let labels = labels_of(&part.whole(None, Column::Label)?, about.outputs)?;
        let found = match &labels {
            Labels::Single { classes, .. } => classes.len(),
            Labels::Multi { values, tasks } => values.len() / tasks,
            Labels::Values { values } => values.len(),
        };
        expect(found, about).while_doing(|| format!("reading labels of part {}", about.part))?;
        Ok(Some(labels))
    }

    /// The splits its own nodes are in, by the numbers of [`Column::Split`].
    ///
    /// # Errors
    /// If its server does not give them, or not as many as described.
    pub fn splits(&self, about: &Description) -> Result<Vec<u8>> {
        let part = match self {
            Self::Local(part) => return Ok(part.splits()?.to_vec()),
            Self::Remote(part) => part,
        };
        let splits = splits_of(&part.whole(None, Column::Split)?)?;
        expect(splits.len(), about)
            .while_doing(|| format!("reading splits of part {}", about.part))?;
        Ok(splits)
    }
}

fn expect(found: usize, about: &Description) -> Result<()> {
    if found as u64 == about.nodes {
        return Ok(());
    }
    Err(Error::invalid(format!("{found} values came for {} nodes", about.nodes)))
}
