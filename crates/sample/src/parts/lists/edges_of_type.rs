//! The edges of one type in a vertex-cut part.

use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_graph::Dataset;
use gnarl_partition::VertexCutPart;

use super::nodes_of_type::{NodesByType, NodesOfType};
use crate::weights::Weights;

/// The edges of one type in a vertex-cut part.
#[derive(Clone)]
pub struct EdgesOfType {
    pub part: Arc<VertexCutPart>,
    /// Number of the edge type in the part.
    pub edge_type: usize,
    pub weights: Option<Weights>,
    /// Graph-wide id of the first node of the destinations' type, and the number of them.
    pub destinations: (u64, u64),
    pub sources: Arc<NodesOfType>,
    /// The nodes of all types.
    pub nodes: Arc<NodesByType>,
    /// The nodes that the part owns.
    pub own: Dataset,
}

impl EdgesOfType {
    /// Local id of a destination, if the part holds it.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn local(&self, id: u64) -> Result<Option<u32>> {
        let (first, count) = self.destinations;
        match id < count {
            true => Ok(self.part.local(first + id)),
            false => Err(Error::invalid(format!("node {id} is not one of {count} of its type"))),
        }
    }
}
