//! The trait of steps over graphs that train alone.

use super::any_step::AnyStep;
use crate::data::batch::BatchSpec;

/// Steps over graphs that train alone: parts, or the whole graph as the only one.
pub trait PartStep: AnyStep {
    /// Number of training examples of each part.
    fn training(&self) -> Vec<usize>;

    /// The batch schedule of an epoch over one part; none if it has no training examples.
    fn part_epoch(&self, part: usize, epoch: usize) -> Vec<BatchSpec>;

    /// Ids of a part's nodes, HALO included, one list per table.
    fn embedding_ids_of(&self, part: usize) -> Vec<Vec<u64>>;
}
