//! Link prediction from rows that a model puts out.
//!
//! The model hears neighbours over the *message graph*, the training edges in both directions. The edges
//! a batch is to find leave it for that batch, with their reverses: else a node would be told its
//! neighbour by the very message that passes over the edge (DistDGLv2, section 5.6).

use std::collections::HashSet;

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_nn::{Params, Tensor};
use gnarl_sample::negatives::Triples;

use super::Links;
use super::leakage::Seen;
use crate::embeddings::Table;
use crate::state::TrainState;
use crate::strategy::Session;

/// What puts out the rows of nodes.
pub(super) trait Encoder: Send + Sync {
    /// Numbers of the edge types that an edge of this relation, and its reverse, have in the message
    /// graph.
    fn edge_types(&self, relation: u32) -> [usize; 2];

    /// The rows of all nodes, by full neighbours.
    fn rows(&self, params: &Params, tables: &[Table]) -> Result<Tensor>;

    /// Trains by batches.
    fn train(
        &self,
        links: &Links,
        session: &Session<'_>,
        rank: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState>;

    /// How many of the edges that the first batches are to find are in the blocks of these batches.
    fn seen(&self, links: &Links) -> Result<Seen>;
}

/// Edges in both directions: edge types of the message graph, dataset ids.
pub(super) struct Targets(HashSet<(usize, u64, u64)>);

impl Targets {
    pub fn of(edges: &Triples, encoder: &dyn Encoder) -> Self {
        let both = (0..edges.len()).flat_map(|i| {
            let (head, tail) = (edges.heads[i].into(), edges.tails[i].into());
            let [there, back] = encoder.edge_types(edges.relations[i]);
            [(there, head, tail), (back, tail, head)]
        });
        Self(both.collect())
    }

    pub fn contains(&self, edge_type: usize, source: u64, destination: u64) -> bool {
        self.0.contains(&(edge_type, source, destination))
    }
}
