//! `hash-2d`: by both endpoints, over a grid of parts.

use gnarl_common::error::Result;
use gnarl_common::rng::Key;
use gnarl_graph::EdgeStream;

use super::partitioner::{EdgePartitioner, EdgeSink, assign_each};
use crate::edge_cut::partitioner::PartitionOptions;

/// Arranges the parts as a grid of `⌈√p⌉` columns; one endpoint's hash chooses the column, the
/// other's the row (GraphX's `EdgePartition2D`, OSDI 2014). A node is in no more than about `2√p`
/// parts.
///
/// A third hash decides which endpoint chooses the column, so both directions of an edge meet in
/// one part and hubs, which tend to have low ids, spread over a column and a row. For numbers that
/// are no product of the two sides the last column is shorter, and drawn in proportion to its
/// length: all parts are equally likely. No state.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hash2d;

impl EdgePartitioner for Hash2d {
    fn name(&self) -> &'static str {
        "hash-2d"
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
        let rows = parts.div_ceil((parts as f64).sqrt().ceil() as u64);
        assign_each(edges, sink, |u, v| {
            let [a, b] = [u, v].map(|end| key.with(end));
            let (a, b) = if a.u64(2) <= b.u64(2) { (a, b) } else { (b, a) };
            let first = a.below(0, parts) / rows * rows;
            let length = rows.min(parts - first);
            (first + b.below(1, length)) as u16
        })
    }
}
