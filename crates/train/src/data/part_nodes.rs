//! The nodes of one type in a partitioned graph.

use gnarl_common::Buf;
#[cfg(feature = "serve")]
use gnarl_common::Result;
#[cfg(feature = "serve")]
use gnarl_partition::PartitionedDataset;
use gnarl_sample::parts::Routes;

/// The parts of the nodes of a type.
#[derive(Debug, Clone)]
pub struct PartNodes {
    /// The parts of each node's edges.
    pub routes: Routes,
    /// New id of each node; those of a part are consecutive.
    pub new_ids: Buf<u64>,
    /// First new id of each part, and the number of nodes.
    pub ranges: Vec<u64>,
}

impl PartNodes {
    /// The nodes of type `name` of `cut`.
    ///
    /// # Errors
    /// If there is no such type, or parts lack the lists of their own nodes.
    #[cfg(feature = "serve")]
    pub fn of_type(cut: &PartitionedDataset, name: &str) -> Result<Self> {
        Ok(Self {
            routes: Routes::of_type(cut, name)?,
            new_ids: cut.new_ids(name)?,
            ranges: cut.node_type(name)?.ranges.clone(),
        })
    }

    /// Number of nodes.
    pub fn num_nodes(&self) -> usize {
        self.new_ids.len()
    }

    /// The part of each node, and its position there.
    #[cfg(feature = "serve")]
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.num_nodes() as u32).map(|node| {
            let part = self.routes.owner(node);
            (part, (self.new_ids[node as usize] - self.ranges[part]) as usize)
        })
    }
}
