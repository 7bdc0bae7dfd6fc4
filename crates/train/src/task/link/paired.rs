//! Held-out edges beside pairs of nodes without an edge.

use gnarl_graph::triples::Triples;

/// Edges, and a pair without an edge for each as far as one was found.
#[derive(Debug)]
pub(super) struct Paired {
    /// The edges, and the pairs behind them.
    pub all: Triples,
    /// The place of the edge that each pair was drawn for.
    pub of: Vec<u32>,
}
