//! Batches of frontier samplers.

use std::sync::Arc;

use gnarl_graph::blocks::Schema;

/// The nodes that a frontier sampler reached, and the edges by which it did. Node and edge types are in the order of the
/// schema.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontierBatch {
    /// The node and edge types.
    pub schema: Arc<Schema>,
    /// The local nodes of each type in the order in which they were reached: seeds, then hop by hop.
    pub nodes: Vec<Vec<u32>>,
    /// Number of nodes of each type that are seeds, and that each hop reached first: one more than hops.
    pub nodes_of_hop: Vec<Vec<usize>>,
    /// The edges of each type.
    pub edges: Vec<FrontierEdges>,
    /// Number of each seed type, and the position of each seed among the nodes of that type.
    pub targets: Vec<(usize, Vec<u32>)>,
    /// The tree of each node of each type, where each seed has a tree of its own.
    pub trees: Option<Vec<Vec<u32>>>,
}

/// The sampled edges of one type, hop by hop.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FrontierEdges {
    /// Position of each edge's source among the nodes of its type.
    pub sources: Vec<u32>,
    /// Position of each edge's destination among the nodes of its type.
    pub destinations: Vec<u32>,
    /// Row of each edge in the edge columns; its position in the lists where edges have none. Parts do not tell any.
    pub rows: Vec<u64>,
    /// Weight of each edge, from parts whose edges have some.
    pub weights: Option<Vec<f32>>,
    /// Number of edges that each hop drew.
    pub of_hop: Vec<usize>,
}

impl FrontierBatch {
    /// Edges of all types.
    pub fn num_edges(&self) -> usize {
        self.edges.iter().map(|edges| edges.sources.len()).sum()
    }
}
