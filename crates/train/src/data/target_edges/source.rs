//! The trait of training edges.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::{IdMap, Result};
use gnarl_graph::triples::Triples;

use crate::data::batch::{BatchSpec, Input};
use crate::task::EdgeBatch;
use crate::task::objective::Targets;

/// The training edges of a task, numbered from 0 in the order of the dataset.
pub(crate) trait TargetEdges: Send + Sync {
    /// Number of training edges.
    fn count(&self) -> usize;

    /// Sets the part of each node that can be a head.
    fn set_parts(&mut self, parts: usize, owner: Arc<IdMap>);

    /// The part of each node that can be a head; empty if the graph was not partitioned.
    fn owner(&self) -> &Arc<IdMap>;

    /// Number of parts that can train alone; 0 if there are none.
    fn parts(&self) -> usize;

    /// Number of training edges of a part that trains alone, or of all where none does.
    fn count_of(&self, part: usize) -> usize {
        self.of_part(part).map_or(self.count(), <[u32]>::len)
    }

    /// The training edges whose heads a part owns; none if no part trains alone, or another rank has the part.
    fn of_part(&self, part: usize) -> Option<&[u32]>;

    /// The edges of a batch.
    ///
    /// # Errors
    /// If a part does not reply.
    fn batch(&self, spec: &BatchSpec) -> Result<TargetBatch>;

    /// Labels of this rank's edges of a batch, and their features if the task reads some.
    ///
    /// # Errors
    /// If edges have no labels, or features cannot be read.
    fn answers(&self, batch: &mut TargetBatch) -> Result<(Targets, Option<Input>)>;

    /// Hands all training edges to `each` with their numbers, some at a time, in any order.
    ///
    /// # Errors
    /// If a part does not reply; those of `each`.
    fn scan(&self, each: &mut dyn FnMut(&[u32], &Triples) -> Result<()>) -> Result<()>;

    /// All training edges in their order, with their rows in the dataset where these are known, and their times if neighbors
    /// are sampled by time.
    ///
    /// # Errors
    /// If a part does not reply.
    fn all(&self) -> Result<EdgeBatch>;
}

/// A batch of training edges.
#[derive(Debug)]
pub(crate) struct TargetBatch {
    /// Edges of all ranks, those of a part one after the other.
    pub edges: Triples,
    /// Their numbers among the training edges.
    pub places: Vec<u32>,
    /// Their times; empty if neighbors are not sampled by time.
    pub times: Vec<i64>,
    /// Range of this rank's edges.
    pub share: Range<usize>,
    /// Labels and features of this rank's edges, where they came with the edges.
    #[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "edges come from servers"))]
    pub fetched: Option<(Targets, Option<Input>)>,
}

impl TargetBatch {
    /// This rank's edges.
    pub fn own(&self) -> Triples {
        let of = |column: &[u32]| column[self.share.clone()].to_vec();
        Triples {
            heads: of(&self.edges.heads),
            relations: of(&self.edges.relations),
            tails: of(&self.edges.tails),
        }
    }

    /// Times of this rank's edges.
    pub fn own_times(&self) -> &[i64] {
        self.times.get(self.share.clone()).unwrap_or_default()
    }
}
