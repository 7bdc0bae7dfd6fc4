//! Partitions found by other algorithms.

use gnarl_common::Kind;
use gnarl_common::error::Result;
use gnarl_graph::EdgeStream;

use crate::balance::constraint::Constraint;
use crate::edge_cut::grem::Grem;
use crate::edge_cut::metis::Metis;
use crate::edge_cut::partitioner::{PartitionOptions, VertexPartitioner};
use crate::read::chunk::Chunk;

/// Most memory for METIS: graphs of up to 0.7 million edges.
const METIS_BYTES: u64 = 64 << 20;
/// METIS finds no partition where parts have fewer nodes.
const LEAST_NODES: u64 = 4;
/// Most edges of a chunk of `grem`, and its memory for such chunks beside 40 bytes a node.
const MOST_CHUNK: u64 = 8 << 20;
const CHUNK_BYTES: u64 = 100 * MOST_CHUNK;

/// The memory of [`partitions`] in a graph of so many nodes and edges.
pub(super) fn memory(nodes: u64, edges: u64, parts: usize) -> u64 {
    let grem = Grem.memory(nodes, edges, parts).unwrap_or(0).min(40 * nodes + CHUNK_BYTES);
    let metis = Metis.memory(nodes, edges, parts).filter(|&needed| needed <= METIS_BYTES);
    grem.max(metis.unwrap_or(0))
}

/// The partitions of `grem`, if the memory suffices, and of METIS, if the graph is small.
pub(super) fn partitions(
    edges: &mut dyn EdgeStream,
    options: &PartitionOptions,
    chosen: &[Constraint],
) -> Result<Vec<Vec<u16>>> {
    let defaults = PartitionOptions::default();
    let nodes = edges.num_nodes();
    let count = edges.num_edges();
    let options = PartitionOptions {
        constraints: Some(chosen.to_vec()),
        chunk: Chunk::Edges(Chunk::default().of(count).min(MOST_CHUNK)),
        passes: defaults.passes,
        freeze: defaults.freeze,
        ..options.clone()
    };
    let mut found = Vec::new();
    match Grem.partition(edges, &options) {
        Ok(result) => found.push(result.of),
        // Too little memory, or METIS failed on its clusters. Damaged edges are met again below.
        Err(error) if matches!(error.kind(), Kind::Limit | Kind::InvalidInput) => {
            tracing::info!(%error, "knot begins without grem's partition");
        }
        Err(error) => return Err(error),
    }
    let needed = Metis.memory(nodes, count, options.parts).unwrap_or(u64::MAX);
    if needed <= METIS_BYTES.min(options.memory) && nodes > LEAST_NODES * options.parts as u64 {
        // A stream that fails fails again when its lists are read.
        match Metis.partition(edges, &options) {
            Ok(result) => found.push(result.of),
            Err(error) => tracing::debug!(%error, "knot begins without METIS's partition"),
        }
    }
    Ok(found)
}
