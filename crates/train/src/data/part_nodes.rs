//! The nodes of one type in a partitioned graph.

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
}

impl PartNodes {
    /// The nodes of type `name` of `cut`.
    ///
    /// # Errors
    /// If there is no such type, or parts lack the lists of their own nodes.
    #[cfg(feature = "serve")]
    pub fn of_type(cut: &PartitionedDataset, name: &str) -> Result<Self> {
        Ok(Self { routes: Routes::of_type(cut, name)? })
    }

    /// Number of nodes.
    pub fn num_nodes(&self) -> usize {
        self.routes.num_nodes()
    }

    /// The part of each node, and its position there.
    #[cfg(feature = "serve")]
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.num_nodes()).map(|node| {
            let (part, at) = self.routes.ids().place(node);
            (part, at as usize)
        })
    }
}
