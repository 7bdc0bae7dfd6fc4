//! Negative samplers: corrupted endpoints for link prediction.
//!
//! In: the edges of a batch, over all ranks. Out: candidates for one side of a rank's share of
//! them. Draws are a function of the key, the side and the numbers of the edges, never of
//! the number of ranks or parts. One file per sampler:
//!
//! | name | candidates | shared by |
//! |---|---|---|
//! | `uniform` | any node | none: each edge has its own |
//! | `joint` | any node | the batch |
//! | `in-batch` | the endpoints of the batch's other edges | the batch |
//! | `local` | nodes of the part of the given endpoint | edges of the part |
//! | `degree` | any node, by its degree to a power | the batch |
//! | `typed` | nodes that the relation has on that side | edges of the relation |
//! | `all` | every node | the batch |
//! | `file` | those listed in a file | none |
//! | `existing` | nodes that are there at the edge's time | none |
//!
//! A candidate that equals the true endpoint is masked. [`Filtered`] masks every known edge,
//! [`Sided`] has one sampler per side where heads are of another type than tails, [`Listed`] has
//! candidates among some nodes.

mod all;
mod degree;
mod existing;
mod file;
mod filtered;
mod in_batch;
mod joint;
mod listed;
mod local;
mod sided;
mod typed;
mod uniform;

pub use all::All;
pub use degree::ByDegree;
pub use existing::Existing;
pub use file::FromFile;
pub use filtered::Filtered;
pub use in_batch::InBatch;
pub use joint::Joint;
pub use listed::Listed;
pub use local::Local;
pub use sided::Sided;
pub use typed::{EndsByRelation, Typed};
pub use uniform::Uniform;

use std::ops::Range;

use gnarl_common::rng::Key;
use gnarl_graph::triples::{Side, Triples};

/// The edges of a batch.
#[derive(Debug, Clone)]
pub struct Positives<'a> {
    /// Edges of all ranks.
    pub triples: &'a Triples,
    /// Their positions among all training edges.
    pub places: &'a [u32],
    /// Their times; empty if they have none.
    pub times: &'a [i64],
    /// Range of this rank's edges.
    pub share: Range<usize>,
}

/// Candidates for one side of a rank's edges.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drawn {
    /// Nodes, group after group.
    pub ids: Vec<u32>,
    /// Number of nodes per group.
    pub count: usize,
    /// The group of each edge of the share.
    pub groups: Vec<u32>,
    /// Pairs of an edge of the share and a column of its group that are left out; ascending.
    pub masked: Vec<[u32; 2]>,
}

impl Drawn {
    /// One group of candidates for all edges.
    fn shared(ids: Vec<u32>, edges: usize) -> Self {
        Self { count: ids.len(), ids, groups: vec![0; edges], masked: Vec::new() }
    }

    /// The candidates of an edge of the share.
    pub fn of(&self, edge: usize) -> &[u32] {
        let group = self.groups[edge] as usize;
        &self.ids[group * self.count..(group + 1) * self.count]
    }
}

/// A negative sampler.
pub trait NegativeSampler: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// Candidates for the endpoints of `side`; true ones may be among them. `key` stands for the
    /// run's seed, the epoch and the batch.
    fn choose(&self, batch: &Positives<'_>, side: Side, key: Key) -> Drawn;

    /// Candidates for the endpoints of `side`, with true ones masked.
    fn draw(&self, batch: &Positives<'_>, side: Side, key: Key) -> Drawn {
        let mut drawn = self.choose(batch, side, key.with(side as u64));
        let own = &batch.triples.ends(side)[batch.share.clone()];
        mask(&mut drawn, |edge| std::slice::from_ref(&own[edge]));
        drawn
    }
}

/// Masks, per edge, the candidates that are among its `right` endpoints, which ascend.
fn mask<'a>(drawn: &mut Drawn, right: impl Fn(usize) -> &'a [u32]) {
    let groups = drawn.groups.iter().max().map_or(0, |&last| last as usize + 1);
    // Columns of each group by node, sorted when the group first appears.
    let mut columns: Vec<Option<Vec<[u32; 2]>>> = vec![None; groups];
    let mut masked = Vec::new();
    for (edge, &group) in drawn.groups.iter().enumerate() {
        let right = right(edge);
        let sorted = columns[group as usize].get_or_insert_with(|| {
            let ids = &drawn.ids[group as usize * drawn.count..][..drawn.count];
            let mut sorted: Vec<_> = (0u32..).zip(ids).map(|(column, &id)| [id, column]).collect();
            sorted.sort_unstable();
            sorted
        });
        let first = masked.len();
        if right.len() > sorted.len() {
            let found = sorted.iter().filter(|[id, _]| right.binary_search(id).is_ok());
            masked.extend(found.map(|&[_, column]| [edge as u32, column]));
        } else {
            for &id in right {
                let start = sorted.partition_point(|&[node, _]| node < id);
                let same = sorted[start..].iter().take_while(|[node, _]| *node == id);
                masked.extend(same.map(|&[_, column]| [edge as u32, column]));
            }
        }
        masked[first..].sort_unstable();
    }
    drawn.masked = masked;
}
