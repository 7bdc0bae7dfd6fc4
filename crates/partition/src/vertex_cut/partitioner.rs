//! The trait of edge partitioners.

use gnarl_common::error::Result;
use gnarl_graph::{EdgeChunk, EdgeStream};
use rayon::prelude::*;

use crate::edge_cut::partitioner::PartitionOptions;

/// Assigns a part to each edge.
///
/// Implementations are deterministic: the result is a function of the edges in their order, the
/// number of nodes and the options, never of the number of threads.
pub trait EdgePartitioner: Send + Sync {
    /// The name in the registry.
    fn name(&self) -> &'static str;

    /// Upper bound of its memory in bytes for so many nodes and edges.
    fn memory(&self, nodes: u64, edges: u64, parts: usize) -> u64;

    /// Rejects invalid numbers of parts and empty graphs, and edges whose
    /// [`memory`](EdgePartitioner::memory) exceeds that of the options; `hint` names the remedy.
    ///
    /// # Errors
    /// The errors of [`partition`](EdgePartitioner::partition) that precede its work.
    fn check(&self, edges: &dyn EdgeStream, options: &PartitionOptions, hint: &str) -> Result<()> {
        let nodes = edges.num_nodes();
        options.check(nodes)?;
        let needed = self.memory(nodes, edges.num_edges(), options.parts);
        options.check_memory(self.name(), needed, hint)
    }

    /// Sends every edge, in the order of the stream and once, to `sink` with its part.
    ///
    /// Edges may be directed, repeated or self loops; nodes without edges appear nowhere.
    ///
    /// # Errors
    /// [`Kind::Usage`](gnarl_common::Kind::Usage) if the number of parts is 0, above the number of
    /// nodes or above [`MAX_PARTS`](crate::MAX_PARTS);
    /// [`Kind::InvalidInput`](gnarl_common::Kind::InvalidInput) if there are no nodes;
    /// [`Kind::Limit`](gnarl_common::Kind::Limit) if the memory does not suffice; whatever the
    /// stream and the sink report.
    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
        sink: &mut dyn EdgeSink,
    ) -> Result<()>;
}

/// Receives the parts of edges, for instance to write or to count them.
pub trait EdgeSink {
    /// Receives the next edges of the stream and the part of each.
    ///
    /// # Errors
    /// Ends the partitioning.
    fn assign(&mut self, edges: &EdgeChunk, parts: &[u16]) -> Result<()>;
}

/// Computes the parts of each chunk by `fill` and passes them to the sink.
pub(super) fn assign_chunks(
    edges: &mut dyn EdgeStream,
    sink: &mut dyn EdgeSink,
    mut fill: impl FnMut(&EdgeChunk, &mut [u16]),
) -> Result<()> {
    let mut chunk = EdgeChunk::default();
    let mut parts = Vec::new();
    edges.reset()?;
    while edges.next_chunk(&mut chunk)? {
        parts.resize(chunk.len(), 0);
        fill(&chunk, &mut parts);
        sink.assign(&chunk, &parts)?;
    }
    Ok(())
}

/// Assigns edges one after the other.
pub(super) fn assign_in_order(
    edges: &mut dyn EdgeStream,
    sink: &mut dyn EdgeSink,
    mut part: impl FnMut(u64, u64) -> u16,
) -> Result<()> {
    assign_chunks(edges, sink, |chunk, parts| {
        for (out, (u, v)) in parts.iter_mut().zip(chunk.iter()) {
            *out = part(u, v);
        }
    })
}

/// Assigns the edges of a chunk in parallel by a pure function.
pub(super) fn assign_each(
    edges: &mut dyn EdgeStream,
    sink: &mut dyn EdgeSink,
    part: impl Fn(u64, u64) -> u16 + Sync,
) -> Result<()> {
    /// Edges worth a task: tens of microseconds of hashing.
    const TASK: usize = 1 << 13;
    assign_chunks(edges, sink, |chunk, parts| {
        let ends = chunk.src.par_iter().zip(&chunk.dst);
        let each = parts.par_iter_mut().zip(ends).with_min_len(TASK);
        each.for_each(|(out, (&u, &v))| *out = part(u, v));
    })
}
