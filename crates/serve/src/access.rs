//! A part, wherever it is.

use std::sync::Arc;

use gnarl_graph::{Context, Error, Labels, Result};
use gnarl_sample::parts::NeighborService;

use crate::codec::{labels_of, splits_of};
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

    /// What it has.
    ///
    /// # Errors
    /// If its server does not say.
    pub fn describe(&self) -> Result<Description> {
        match self {
            Self::Local(part) => Ok(part.describe()),
            Self::Remote(part) => part.describe(),
        }
    }

    /// What draws its neighbours.
    pub fn neighbors(&self) -> Arc<dyn NeighborService> {
        match self {
            Self::Local(part) => Arc::new(part.counters()),
            Self::Remote(part) => Arc::new(part.clone()),
        }
    }

    /// Labels of its own nodes, in the order of their new ids, if nodes have labels.
    ///
    /// # Errors
    /// If its server does not give them, or not as many as described.
    pub fn labels(&self, about: &Description) -> Result<Option<Labels>> {
        let part = match self {
            Self::Local(part) => return Ok(part.labels().cloned()),
            Self::Remote(part) => part,
        };
        if about.outputs == 0 {
            return Ok(None);
        }
        let labels = labels_of(&part.whole(Column::Label)?, about.outputs)?;
        let found = match &labels {
            Labels::Single { classes, .. } => classes.len(),
            Labels::Multi { values, tasks } => values.len() / tasks,
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
            Self::Local(part) => return Ok(part.splits().to_vec()),
            Self::Remote(part) => part,
        };
        let splits = splits_of(&part.whole(Column::Split)?)?;
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
