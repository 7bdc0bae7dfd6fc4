//! Link prediction from rows that a model puts out.
//!
//! The model hears neighbours over the *message graph*, the training edges in both directions. The edges
//! a batch is to find leave it for that batch, with their reverses: else a node would be told its
//! neighbour by the very message that passes over the edge (DistDGLv2, section 5.6).

use std::collections::HashSet;

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_graph::rng::Key;
use gnarl_nn::{Params, Tape, Tensor, Var};
use gnarl_sample::Scratch;
use gnarl_sample::negatives::Triples;

use super::Links;
use super::encoded::EncodedLearner;
use super::leakage::Seen;
use crate::config::RunConfig;
use crate::embeddings::Rows;
use crate::state::TrainState;
use crate::strategy::{Session, gradient};

/// Edges, by edge type of the message graph and dataset ids of source and destination.
pub(super) type TypedEdges = HashSet<(usize, u64, u64)>;

/// A model over a message graph, and how its batches are made.
pub(super) trait MessageModel: Send + Sync {
    /// Draws neighbours.
    type Sampler: Send + Sync;
    /// A batch as it was drawn.
    type Sampled: Send;
    /// A batch ready for compute.
    type Batch: Send + Sync;

    /// Numbers of the edge types that an edge of this relation, and its reverse, have in the message
    /// graph.
    fn edge_types(&self, relation: u32) -> [usize; 2];

    /// The rows of all nodes, by full neighbours.
    fn rows(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Tensor>;

    /// What `config` says of neighbours.
    fn sampler(&self, config: &RunConfig) -> Result<Self::Sampler>;

    /// The neighbourhoods of some nodes.
    fn sample(
        &self,
        sampler: &Self::Sampler,
        nodes: &[u32],
        key: Key,
        scratch: &mut Scratch,
    ) -> Result<Self::Sampled>;

    /// Takes edges out of a batch.
    fn remove(&self, sampled: &mut Self::Sampled, edges: &TypedEdges);

    /// The edges of all blocks of a batch.
    fn edges(&self, sampled: &Self::Sampled) -> TypedEdges;

    /// Gathers what a batch needs. Beside it, for each node that was sampled for, which of the rows put
    /// out is its.
    fn fetch(&self, sampled: Self::Sampled) -> Result<(Self::Batch, Vec<u32>)>;

    /// Prepares what backward needs too.
    fn prepare(&self, batch: &Self::Batch);

    /// Edges of all blocks.
    fn num_edges(&self, batch: &Self::Batch) -> usize;

    /// Ids of the learnt rows that a batch reads, for each table.
    fn learnt<'b>(&self, _batch: &'b Self::Batch) -> &'b [Vec<u64>] {
        &[]
    }

    /// The rows put out, and the leaves of the learnt `rows` that they are of.
    fn forward<'b>(
        &self,
        tape: &mut Tape<'b>,
        batch: &'b Self::Batch,
        rows: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)>;
}

/// A [`MessageModel`], whatever its batches are.
pub(super) trait Encoder: Send + Sync {
    /// See [`MessageModel::edge_types`].
    fn edge_types(&self, relation: u32) -> [usize; 2];

    /// See [`MessageModel::rows`].
    fn rows(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Tensor>;

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

impl<M: MessageModel> Encoder for M {
    fn edge_types(&self, relation: u32) -> [usize; 2] {
        MessageModel::edge_types(self, relation)
    }

    fn rows(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Tensor> {
        MessageModel::rows(self, params, tables)
    }

    fn train(
        &self,
        links: &Links,
        session: &Session<'_>,
        rank: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState> {
        gradient::train(session, &EncodedLearner::new(links, self)?, rank, state)
    }

    fn seen(&self, links: &Links) -> Result<Seen> {
        EncodedLearner::new(links, self)?.seen()
    }
}

/// Edges with relations as edges of the message graph, in both directions.
pub(super) fn both_ways(edges: &Triples, types: impl Fn(u32) -> [usize; 2]) -> TypedEdges {
    let both = (0..edges.len()).flat_map(|i| {
        let (head, tail) = (edges.heads[i].into(), edges.tails[i].into());
        let [forth, back] = types(edges.relations[i]);
        [(forth, head, tail), (back, tail, head)]
    });
    both.collect()
}
