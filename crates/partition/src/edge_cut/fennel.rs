//! `fennel`: greedy placement with a smooth penalty on size (Tsourakakis et al., WSDM 2014).

use gnarl_common::error::Result;
use gnarl_graph::EdgeStream;

use crate::edge_cut::partitioner::{Assignment, PartitionOptions, VertexPartitioner};
use crate::edge_cut::stream::place_greedily;

/// γ, the paper's choice: between counting neighbors only (1) and modularity (2).
const GAMMA: f64 = 1.5;

/// Puts each node into the part of the greatest `|N(v) ∩ P_i| − α·γ·|P_i|^(γ−1)`, with γ = 1.5 and
/// `α = √p · |E| / |V|^1.5`, that has no more than [`PartitionOptions::balance`] times the mean of
/// the nodes (the paper's ν, there 1.1; exact).
///
/// The stream and the memory are those of [`Ldg`](crate::Ldg). `|E|` counts the stream's edges: a
/// neighbor counts once per edge to it, so that graphs with both directions in the stream
/// weigh twice on either side.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fennel;

impl VertexPartitioner for Fennel {
    fn name(&self) -> &'static str {
        "fennel"
    }

    fn memory(&self, nodes: u64, edges: u64, _parts: usize) -> Option<u64> {
        Some(crate::edge_cut::stream::memory(nodes, edges))
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        let (nodes, count) = (edges.num_nodes() as f64, edges.num_edges() as f64);
        let alpha = (options.parts as f64).sqrt() * count / nodes.powf(GAMMA);
        // γ − 1 is one half.
        let score = |shared: u32, size: u64| shared as f64 - alpha * GAMMA * (size as f64).sqrt();
        place_greedily(self.name(), edges, options, score)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_graph::MemoryEdges;

    #[test]
    fn size_is_paid_for() {
        // α·γ is 1.5 · √2 · 4 / 8: a part with one node costs 1.06, one neighbor is worth 1.
        let mut edges = MemoryEdges::new(4, [(0, 1), (1, 2), (2, 3), (0, 1)]).unwrap();
        let options = PartitionOptions { balance: 2.0, ..Default::default() };
        // Node 1 has two edges to node 0 and joins it, node 2 one edge to a part of two nodes.
        assert_eq!(Fennel.partition(&mut edges, &options).unwrap().of, [0, 0, 1, 1]);
    }
}
