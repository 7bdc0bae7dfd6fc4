//! `hash-1d`: by the source of the edge.

use gnarl_common::error::Result;
use gnarl_common::rng::Key;
use gnarl_graph::EdgeStream;

use super::partitioner::{EdgePartitioner, EdgeSink, assign_each};
use crate::edge_cut::partitioner::PartitionOptions;

/// Hashes the source (GraphX's `EdgePartition1D`, OSDI 2014): all out-edges of a node are in one
/// part. The two directions of an undirected edge are two edges here; what a hub sends stays in one
/// part, so edges balance only where no out-degree is large. No state.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hash1d;

impl EdgePartitioner for Hash1d {
    fn name(&self) -> &'static str {
        "hash-1d"
    }

    fn memory(&self, _nodes: u64, _edges: u64, _parts: usize) -> u64 {
        0
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
        sink: &mut dyn EdgeSink,
    ) -> Result<()> {
        options.check(edges.num_nodes())?;
        let (key, parts) = (Key::new(options.seed), options.parts as u64);
        assign_each(edges, sink, |u, _| key.with(u).below(0, parts) as u16)
    }
}
