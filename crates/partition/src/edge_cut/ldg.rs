//! `ldg`: linear deterministic greedy (Stanton and Kliot, KDD 2012).

use gnarl_common::error::Result;
use gnarl_graph::EdgeStream;

use crate::edge_cut::partitioner::{Assignment, PartitionOptions, VertexPartitioner};
use crate::edge_cut::stream::place_greedily;

/// Puts each node where most of its neighbors are, discounted by the fullness of the part: into the
/// part of the greatest `|N(v) ∩ P_i| · (1 − |P_i| / C)`, `C` being the most nodes a part may have
/// ([`PartitionOptions::balance`] times the mean; exact).
///
/// Nodes are placed in ascending order of their ids, with all neighbors over in- and out-edges.
/// Memory: 16 bytes a node; the rest buffers neighbor lists, and the stream is read once more for
/// each time they fill it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ldg;

impl VertexPartitioner for Ldg {
    fn name(&self) -> &'static str {
        "ldg"
    }

    fn memory(&self, nodes: u64, edges: u64, _parts: usize) -> Option<u64> {
        Some(crate::edge_cut::stream::memory(nodes, edges))
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        options.check(edges.num_nodes())?;
        let capacity = options.capacity(edges.num_nodes()) as f64;
        let score = |shared: u32, size: u64| shared as f64 * (1.0 - size as f64 / capacity);
        place_greedily(self.name(), edges, options, score)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_graph::MemoryEdges;

    #[test]
    fn full_parts_lose_their_pull() {
        // Nodes 0 and 1 open a part each; 2 and 3 follow 0. Node 4 has two neighbors in that part,
        // at 2 · (1 − 3/4), and one in the other, at 1 · (1 − 1/4).
        let pairs = [(0, 2), (0, 3), (4, 2), (4, 3), (4, 1)];
        let mut edges = MemoryEdges::new(5, pairs).unwrap();
        let options = PartitionOptions { balance: 1.6, ..Default::default() };
        assert_eq!(Ldg.partition(&mut edges, &options).unwrap().of, [0, 1, 0, 0, 1]);
    }
}
