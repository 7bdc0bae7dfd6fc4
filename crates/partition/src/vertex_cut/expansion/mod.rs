//! Neighbour expansion: what `dne` and `adadne` share.
//!
//! Every part grows an edge set of its own, all in step. In a round each part
//! 1. takes from its boundary a fraction λ of the nodes, those with the fewest open edges;
//! 2. gets their open edges ("one-hop"), and the other ends join its boundary;
//! 3. gets the open edges between its nodes and the newcomers ("two-hop").
//!
//! At the end `adadne` settles: edges move until its bounds hold.
//!
//! Parts look at the state in parallel and change it one after the other, in turns that go to the
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

/// Bytes an expansion holds for each edge of the stream, if no two of them join the same nodes: 4
/// for its higher end, 4 for its copies, 16 in the lists of its ends, 2 for its part, and up to 20
/// while a round's edges change hands.
const EDGE_BYTES: u64 = 46;

/// Bytes for each node beside the part sets: offsets of two kinds of lists and their construction
/// 24, lengths of lists and open edges 8, the order of seeds 4; and 4 for each replica on a
/// boundary, taken as 4 of them.
const NODE_BYTES: u64 = 52;

/// Bytes an expansion holds.
pub(super) fn memory(nodes: u64, edges: u64, parts: usize) -> u64 {
    EDGE_BYTES * edges + NODE_BYTES * nodes + PartSets::bytes(nodes, parts)
}

/// Refuses, reads, expands and assigns.
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
        return Err(Error::usage(format!("{name}: a share of {lambda} of the boundary"))
            .hint("0.1 expands a tenth of it in a round"));
    }
    Graph::check(name, nodes, edges.num_edges(), options.parts)?;
    let needed = memory(nodes, edges.num_edges(), options.parts);
    options.check_memory(name, needed, "raise --memory or use 2ps-l, which streams")?;
    let mut graph = Graph::read(edges)?;
    let owner = Rounds::new(&mut graph, options.parts, Key::new(options.seed)).run(rules);
    assign_each(edges, sink, |u, v| owner[graph.edge(u, v)])
}
