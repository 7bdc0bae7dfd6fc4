//! Negatives: ends that are put in the place of the right ones, to tell edges from what is none.
//!
//! In: the edges of a batch, over all ranks. Out: candidates for one side of those edges that a rank has.
//! What is drawn is a function of the key, the side and the place in the whole batch, never of how many
//! ranks share it. One file for each way:
//!
//! | name | candidates | who shares them |
//! |---|---|---|
//! | `uniform` | any node | nobody: each edge has its own |
//! | `joint` | any node | the batch |
//! | `in-batch` | the ends of the batch's other edges | the batch |
//! | `local` | nodes of the part that the known end is in | edges of the part |
//! | `degree` | any node, by its degree to a power | the batch |
//! | `typed` | nodes that the relation has at that side | edges of the relation |
//! | `all` | every node | the batch |
//! | `file` | those a file lists | nobody |
//!
//! A candidate that happens to be the right end is masked. [`Filtered`] masks every known edge, [`Sided`]
//! has a sampler for each side where heads are of another type than tails.

mod all;
mod degree;
mod file;
mod filtered;
mod in_batch;
mod joint;
mod local;
mod sided;
mod typed;
mod uniform;

pub use all::All;
pub use degree::ByDegree;
pub use file::FromFile;
pub use filtered::Filtered;
pub use in_batch::InBatch;
pub use joint::Joint;
pub use local::Local;
pub use sided::Sided;
pub use typed::Typed;
pub use uniform::Uniform;

use std::ops::Range;

use gnarl_common::rng::Key;
use gnarl_graph::triples::{Side, Triples};

/// The edges of a batch.
#[derive(Debug, Clone)]
pub struct Positives<'a> {
    /// Those of all ranks.
    pub triples: &'a Triples,
    /// Their places among all edges that are trained on.
    pub places: &'a [u32],
    /// Which of them this rank has.
    pub share: Range<usize>,
}

/// Candidates for one side of a rank's edges.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drawn {
    /// Nodes, group after group.
    pub ids: Vec<u32>,
    /// How many a group has.
    pub count: usize,
    /// The group of each edge of the share.
    pub groups: Vec<u32>,
    /// Edges of the share, and columns of their groups that do not count; ascending.
    pub masked: Vec<[u32; 2]>,
}

impl Drawn {
    /// Candidates that all edges meet.
    fn shared(ids: Vec<u32>, edges: usize) -> Self {
        Self { count: ids.len(), ids, groups: vec![0; edges], masked: Vec::new() }
    }

    /// The candidates of an edge of the share.
    pub fn of(&self, edge: usize) -> &[u32] {
        let group = self.groups[edge] as usize;
        &self.ids[group * self.count..(group + 1) * self.count]
    }
}

/// A way to choose candidates.
pub trait NegativeSampler: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// Candidates for the ends of `side`; right ones may be among them. `key` stands for the run's seed,
    /// the epoch and the batch.
    fn choose(&self, batch: &Positives<'_>, side: Side, key: Key) -> Drawn;

    /// Candidates for the ends of `side`, of which right ones are masked.
    fn draw(&self, batch: &Positives<'_>, side: Side, key: Key) -> Drawn {
        let mut drawn = self.choose(batch, side, key.with(side as u64));
        let own = &batch.triples.ends(side)[batch.share.clone()];
        mask(&mut drawn, |edge| std::slice::from_ref(&own[edge]));
        drawn
    }
}

/// Masks, for each edge, those candidates that are among its `right` ends, which ascend.
fn mask<'a>(drawn: &mut Drawn, right: impl Fn(usize) -> &'a [u32]) {
    let groups = drawn.groups.iter().max().map_or(0, |&last| last as usize + 1);
    // Columns of each group by the node there, made when the group is first met.
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
