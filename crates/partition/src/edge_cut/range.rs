//! `range`: equal ranges of ids; good where ids already follow the graph's communities.

use gnarl_common::error::Result;
use gnarl_graph::EdgeStream;

use crate::edge_cut::partitioner::{Assignment, PartitionOptions, VertexPartitioner};

/// Sends node `v` of `n` to part `⌊v · parts / n⌋`: part sizes differ by at most one. Memory: the
/// result.
#[derive(Debug, Clone, Copy, Default)]
pub struct Range;

impl VertexPartitioner for Range {
    fn name(&self) -> &'static str {
        "range"
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        let nodes = edges.num_nodes();
        options.check(nodes)?;
        let parts = options.parts as u128;
        let of = (0..nodes).map(|v| (v as u128 * parts / nodes as u128) as u16).collect();
        Ok(Assignment { parts: options.parts, of })
    }

    fn memory(&self, nodes: u64, _edges: u64, _parts: usize) -> Option<u64> {
        Some(2 * nodes)
    }
}
