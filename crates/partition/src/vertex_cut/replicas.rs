//! Replicas of nodes, and the quality of a vertex cut.

use gnarl_common::error::Result;
use gnarl_graph::EdgeChunk;

use super::partitioner::EdgeSink;
use super::sets::PartSets;

/// An [`EdgeSink`] that records the parts of every node and counts the edges of every part.
/// Memory: that of [`PartSets`].
#[derive(Debug, Clone)]
pub struct Replicas {
    sets: PartSets,
    edges: Vec<u64>,
}

/// The quality of a vertex cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CutQuality {
    /// Replicas over nodes that have an edge; 1 if none has.
    pub replication_factor: f64,
    /// Replicas: largest part over mean.
    pub vertex_balance: f64,
    /// Edges: largest part over mean.
    pub edge_balance: f64,
}

impl Replicas {
    /// No replicas yet.
    pub fn new(num_nodes: u64, parts: usize) -> Self {
        Self { sets: PartSets::new(num_nodes, parts), edges: vec![0; parts] }
    }

    /// The parts of every node.
    pub fn sets(&self) -> &PartSets {
        &self.sets
    }

    /// Edges in each part.
    pub fn part_edges(&self) -> &[u64] {
        &self.edges
    }

    /// Replicas in each part.
    pub fn part_nodes(&self) -> Vec<u64> {
        let mut counts = vec![0; self.edges.len()];
        for v in 0..self.sets.num_nodes() {
            self.sets.parts(v).for_each(|p| counts[p] += 1);
        }
        counts
    }

    /// Replication factor and balances.
    pub fn quality(&self) -> CutQuality {
        let nodes = self.part_nodes();
        let touched = (0..self.sets.num_nodes()).filter(|&v| self.sets.count(v) > 0).count();
        let replicas: u64 = nodes.iter().sum();
        CutQuality {
            replication_factor: if touched == 0 { 1.0 } else { replicas as f64 / touched as f64 },
            vertex_balance: crate::report::balance(&nodes),
            edge_balance: crate::report::balance(&self.edges),
        }
    }
}

impl EdgeSink for Replicas {
    fn assign(&mut self, edges: &EdgeChunk, parts: &[u16]) -> Result<()> {
        for ((u, v), &part) in edges.iter().zip(parts) {
            self.edges[part as usize] += 1;
            self.sets.insert(u, part as usize);
            self.sets.insert(v, part as usize);
        }
        Ok(())
    }
}
