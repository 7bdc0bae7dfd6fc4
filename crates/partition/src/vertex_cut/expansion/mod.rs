//! Neighbor expansion, shared by `dne` and `adadne`.
//!
//! Every part grows an edge set of its own, all in step. In a round each part
//! 1. takes from its boundary a fraction λ of the nodes, those with the fewest open edges;
//! 2. receives their open edges ("one-hop"), and the other endpoints join its boundary;
//! 3. receives the open edges between its nodes and the newcomers ("two-hop").
//!
//! At the end `adadne` rebalances: edges move until its bounds hold.
//!
//! Parts read the state in parallel and change it one after the other, in turns that go to the
//! part with the fewest edges, so the outcome is the same for any number of threads.

mod graph;
mod rounds;
mod settle;

use gnarl_common::error::{Error, Result};
use gnarl_common::rng::Key;
use gnarl_graph::EdgeStream;

pub(super) use rounds::{Part, Rules};
pub(super) use settle::Bounds;

use super::partitioner::{EdgeSink, assign_each};
use super::sets::PartSets;
use crate::edge_cut::partitioner::PartitionOptions;
use graph::Graph;
use rounds::Rounds;

/// Bytes per edge of the stream, if no two edges join the same nodes: 4 for its higher endpoint, 4
/// for its multiplicity, 16 in the lists of its endpoints, 2 for its part, and up to 20 while a
/// round's edges change hands.
const EDGE_BYTES: u64 = 46;

/// Bytes per node beside the part sets: offsets of two kinds of lists and their construction
/// 24, lengths of lists and open edges 8, the order of seeds 4; and 4 for each replica on a
/// boundary, estimated as 4 replicas.
const NODE_BYTES: u64 = 52;

/// Memory of an expansion in bytes.
pub(super) fn memory(nodes: u64, edges: u64, parts: usize) -> u64 {
    EDGE_BYTES * edges + NODE_BYTES * nodes + PartSets::bytes(nodes, parts)
}

/// Checks the graph, reads it, expands, and assigns the edges.
pub(super) fn run(
    name: &'static str,
    edges: &mut dyn EdgeStream,
    options: &PartitionOptions,
    sink: &mut dyn EdgeSink,
    rules: &dyn Rules,
) -> Result<()> {
    let nodes = edges.num_nodes();
    options.check(nodes)?;
    if !(1e-6..=1.0).contains(&rules.lambda()) {
        let lambda = rules.lambda();
        return Err(Error::usage(format!(
            "invalid lambda '{lambda}' of {name}: expected a share in [1e-6, 1]"
        ))
        .hint("0.1 expands a tenth of it in a round"));
    }
    Graph::check(name, nodes, edges.num_edges(), options.parts)?;
    let needed = memory(nodes, edges.num_edges(), options.parts);
    options.check_memory(name, needed, "raise --memory or use 2ps-l, which streams")?;
    let mut graph = Graph::read(edges)?;
    let owner = Rounds::new(&mut graph, options.parts, Key::new(options.seed)).run(rules);
    assign_each(edges, sink, |u, v| owner[graph.edge(u, v)])
}
