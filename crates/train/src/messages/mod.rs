//! Rows of nodes that a model puts out for edges, in link prediction and where labels of edges are learnt.
//!
//! The model hears neighbours over the *message graph*. The edges a batch is about leave it for that
//! batch, with their reverses: else a node would be told its neighbour by the very message that passes
//! over the edge (DistDGLv2, section 5.6).

mod dataset;
mod jobs;
mod plain;
pub(crate) mod relational;
mod typed;

use std::collections::HashSet;

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_graph::rng::Key;
use gnarl_nn::{Params, Tape, Tensor, Var};
use gnarl_sample::Scratch;
use gnarl_sample::negatives::Triples;
use serde::{Deserialize, Serialize};

use crate::config::RunConfig;
use crate::embeddings::Rows;
use crate::tensor::WholeModel;

pub(crate) use dataset::{asked, of_types, ways as ways_of_type};
pub(crate) use jobs::{Numbers, jobs};
pub(crate) use plain::PlainEncoder;
pub(crate) use relational::relational;
pub(crate) use typed::TypedEncoder;

/// Batches of training edges that are looked at for leakage.
pub(crate) const LOOKED_AT: usize = 20;

/// Edges, by edge type of the message graph and dataset ids of source and destination.
pub(crate) type TypedEdges = HashSet<(usize, u64, u64)>;

/// Numbers of the edge types that edges have in the message graph, and that their reverses have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ways {
    pub forth: usize,
    /// None if there are no reverses.
    pub back: Option<usize>,
}

/// Edges of a graph of one node type, over which messages pass in both directions.
pub(crate) struct MessageEdges<'a> {
    pub edges: &'a Triples,
    pub node_type: &'a str,
    pub nodes: usize,
    pub relations: usize,
}

/// A model over a message graph, and how its batches are made.
pub(crate) trait MessageModel: Send + Sync {
    /// Draws neighbours.
    type Sampler: Send + Sync;
    /// A batch as it was drawn.
    type Sampled: Send;
    /// A batch ready for compute.
    type Batch: Send + Sync;
    /// The model over the whole graph, as one of several ranks.
    type Columns<'a>: WholeModel
    where
        Self: 'a;

    /// How edges of this relation pass messages.
    fn ways(&self, relation: u32) -> Ways;

    /// The rows of all nodes, by full neighbours: for each type that ends of edges have.
    fn rows(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Vec<Tensor>>;

    /// What `config` says of neighbours.
    fn sampler(&self, config: &RunConfig) -> Result<Self::Sampler>;

    /// The neighbourhoods of some nodes of each type that ends of edges have.
    fn sample(
        &self,
        sampler: &Self::Sampler,
        nodes: &[Vec<u32>],
        key: Key,
        scratch: &mut Scratch,
    ) -> Result<Self::Sampled>;

    /// Takes edges out of a batch.
    fn remove(&self, sampled: &mut Self::Sampled, edges: &TypedEdges);

    /// The edges of all blocks of a batch.
    fn edges(&self, sampled: &Self::Sampled) -> TypedEdges;

    /// Gathers what a batch needs. Beside it, for each node that was sampled for, of one type after the
    /// other, which of the rows put out is its.
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

    /// The model as `rank` has it, one of those that share out columns.
    ///
    /// # Errors
    /// If the graph is too large for a block.
    fn by_columns<'a>(&'a self, rank: &'a dyn Communicator) -> Result<Self::Columns<'a>>;
}

/// Edges with relations as edges of the message graph, in both directions.
pub(crate) fn both_ways(edges: &Triples, ways: impl Fn(u32) -> Ways) -> TypedEdges {
    let mut all = TypedEdges::with_capacity(2 * edges.len());
    for i in 0..edges.len() {
        let (head, tail) = (edges.heads[i].into(), edges.tails[i].into());
        let Ways { forth, back } = ways(edges.relations[i]);
        all.insert((forth, head, tail));
        all.extend(back.map(|back| (back, tail, head)));
    }
    all
}

/// Edges that a batch was about, and how many of them, or of their reverses, could be seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Edges looked at.
    pub edges: usize,
    /// Those that were there, in either direction.
    pub seen: usize,
}

impl Seen {
    /// Looks for `edges` among those that pass messages.
    pub(crate) fn of(edges: &Triples, there: &TypedEdges, ways: impl Fn(u32) -> Ways) -> Self {
        let visible = |&i: &usize| {
            let (head, tail) = (edges.heads[i].into(), edges.tails[i].into());
            let Ways { forth, back } = ways(edges.relations[i]);
            there.contains(&(forth, head, tail))
                || back.is_some_and(|back| there.contains(&(back, tail, head)))
        };
        Self { edges: edges.len(), seen: (0..edges.len()).filter(visible).count() }
    }

    /// Adds what was found elsewhere.
    pub(crate) fn add(&mut self, other: Self) {
        self.edges += other.edges;
        self.seen += other.seen;
    }
}
