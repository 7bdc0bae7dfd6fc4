//! Replicas of other parts' lists.

use std::sync::Arc;

use gnarl_common::{Error, Result};
use hashbrown::HashMap;

use super::{DrawFrom, Lists};
use crate::SampleGraph;
use crate::parts::hop::HopReply;

/// Replicas of the complete lists of some nodes, which come first in the graph.
pub struct Copied {
    pub graph: SampleGraph,
    /// Local ids of these nodes.
    pub local: Arc<HashMap<u32, u32>>,
}

impl Lists for Copied {
    fn num_nodes(&self) -> usize {
        self.graph.num_nodes()
    }

    fn local(&self, id: u64) -> Result<Option<u32>> {
        let found = u32::try_from(id).ok().and_then(|id| self.local.get(&id));
        let missing = || Error::invalid(format!("the list of node {id} is not replicated"));
        found.copied().map(Some).ok_or_else(missing)
    }

    fn read(&self, nodes: &[u32], draw: &mut DrawFrom<'_>) -> Result<HopReply> {
        draw(self.graph.view(), nodes)
    }
}
