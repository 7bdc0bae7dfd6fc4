//! Requests for batches: all that a batch is a function of, beside the graph and the sampler.

use gnarl_common::rng::Key;

use crate::endpoints::{EdgeKind, Ends};

/// A request for a batch.
#[derive(Debug, PartialEq)]
pub(crate) struct BatchRequest {
    /// Places of the examples in the list that the loader was given.
    pub places: Vec<u32>,
    /// Decides what is drawn.
    pub key: Key,
    /// The examples that it is around.
    pub around: Around,
    /// The time of each example, in temporal sampling.
    pub times: Option<Vec<i64>>,
}

/// The examples of a batch.
#[derive(Debug, PartialEq)]
pub(crate) enum Around {
    /// Nodes of a type.
    Nodes { node_type: usize, nodes: Vec<u32> },
    /// Edges and their negatives.
    Edges(EdgeKind, Ends),
}
