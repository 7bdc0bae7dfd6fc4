//! The seam between tasks of edges and the inference of trained runs.

use gnarl_common::Result;
use gnarl_graph::Triple;
use gnarl_graph::triples::{Side, Triples};
use gnarl_nn::decoders::Decoder;
use gnarl_nn::{Params, Tensor};

use crate::data::target_edges::{KnownEdges, Query};

/// Edges to score: endpoints by their numbers within their node types.
#[derive(Debug, Clone, Default)]
pub struct EdgeBatch {
    /// Endpoints and relations.
    pub edges: Triples,
    /// Rows of the edges in the dataset; empty if they are no edges of it.
    pub rows: Vec<u64>,
    /// Times of the edges, which they are scored just before; empty if the run samples no neighbors by time, or if edges
    /// are scored after all edges of the dataset.
    pub times: Vec<i64>,
}

/// A task that scores edges from the embeddings of their endpoints.
pub(crate) trait EdgeScores: Send + Sync {
    /// The type of its edges.
    fn triple(&self) -> &Triple;

    /// Number of relations.
    fn num_relations(&self) -> usize;

    /// Names of relations; none if they are numbers.
    fn relation_names(&self) -> &[String];

    /// The edges of a split; none if there is no such split.
    ///
    /// # Errors
    /// If a part does not reply.
    fn split(&self, name: &str) -> Result<Option<EdgeBatch>>;

    /// Returns whether scores depend on features of the edges, so that only edges of the dataset have some.
    fn reads_rows(&self) -> bool;

    /// Returns whether several labels of an edge may hold.
    fn has_several_labels(&self) -> bool {
        false
    }

    /// Scores of edges, one row each, from the embeddings of their endpoints.
    ///
    /// # Errors
    /// If features of edges cannot be read.
    fn score(&self, params: &Params, endpoints: [Tensor; 2], batch: &EdgeBatch) -> Result<Tensor>;

    /// The means to rank candidates; none where edges are labeled, not predicted.
    fn ranking(&self) -> Option<Ranking<'_>> {
        None
    }
}

/// The means to rank candidates for an endpoint of an edge.
pub(crate) struct Ranking<'a> {
    pub decoder: &'a dyn Decoder,
    /// The edges of all splits, with tails numbered from `first_tail` on.
    pub known: &'a dyn KnownEdges,
    pub first_tail: u32,
}

impl Ranking<'_> {
    /// The number of a node in `known`: tails follow heads where the two are of different types.
    pub fn number(&self, node: u32, side: Side) -> u32 {
        match side {
            Side::Head => node,
            Side::Tail => node + self.first_tail,
        }
    }

    /// The numbers of the endpoints on `side` of the known edges of each of the `given` nodes and relations.
    ///
    /// # Errors
    /// If a part does not reply.
    pub fn known_ends(&self, side: Side, given: &[(u32, u32)]) -> Result<Vec<Vec<u32>>> {
        let query =
            |&(given, relation): &(u32, u32)| (side, [self.number(given, side.other()), relation]);
        let queries: Vec<Query> = given.iter().map(query).collect();
        let known = self.known.of(&queries)?;
        let ends = |&(side, [given, relation]): &Query| known.ends(side, given, relation).to_vec();
        Ok(queries.iter().map(ends).collect())
    }
}
