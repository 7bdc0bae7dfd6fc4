//! Lengths of lists that parts hold, as far as they were read.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Numbers of in-neighbors of the nodes of a type.
pub(super) struct ListLengths {
    /// In-neighbors of each node and itself, as far as its lists were read; else 0.
    lengths: Vec<AtomicU32>,
    /// Nodes read, and their in-neighbors.
    read: [AtomicU64; 2],
}

impl ListLengths {
    /// Of `nodes` nodes, of which none was read.
    pub fn new(nodes: usize) -> Self {
        let read = Default::default();
        Self { lengths: (0..nodes).map(|_| AtomicU32::new(0)).collect(), read }
    }

    /// Number of nodes.
    pub fn num_nodes(&self) -> usize {
        self.lengths.len()
    }

    /// Notes the in-neighbors of a node.
    pub fn note(&self, node: u32, neighbors: u32) {
        let length = neighbors.saturating_add(1);
        if self.lengths[node as usize].swap(length, Ordering::Relaxed) == 0 {
            self.read[0].fetch_add(1, Ordering::Relaxed);
            self.read[1].fetch_add(neighbors.into(), Ordering::Relaxed);
        }
    }

    /// A node and its in-neighbors. The mean of the lists read so far stands for those that were not.
    pub fn num_inputs(&self, node: u32) -> usize {
        let [nodes, neighbors] = [&self.read[0], &self.read[1]].map(|n| n.load(Ordering::Relaxed));
        match self.lengths[node as usize].load(Ordering::Relaxed) {
            0 => 1 + neighbors.div_ceil(nodes.max(1)) as usize,
            length => length as usize,
        }
    }
}
