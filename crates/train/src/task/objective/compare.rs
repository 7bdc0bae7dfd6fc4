//! The traits of objectives and of their scores.

use gnarl_common::Result;
use gnarl_graph::Labels;
use gnarl_nn::metrics::smaller_is_better;
use gnarl_nn::{Tape, Tensor, Var};

use super::targets::Targets;
use crate::evaluation::{ClassScores, Scores};

/// The comparison of predictions with targets, whatever model makes them.
///
/// Losses and scores are sums over examples, each by itself: so a run has the same numbers on any number of ranks,
/// which share out the examples of a batch.
pub trait Objective: Send + Sync {
    /// Columns of the predictions for such labels.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the objective is not one of such labels.
    fn outputs(&self, labels: &Labels) -> Result<usize>;

    /// Key of the score that decides which weights are best.
    fn metric(&self) -> &str;

    /// True if the smaller of two values of that score is the better one.
    fn smaller_is_better(&self) -> bool {
        smaller_is_better(self.metric())
    }

    /// The summed loss of examples: row `rows[i]` of `predictions` (`[n × outputs]`) belongs to target `i`. Of examples
    /// with `weights` each counts by its own.
    fn loss(
        &self,
        tape: &mut Tape<'_>,
        predictions: Var,
        rows: &[u32],
        targets: &Targets,
        weights: Option<&[f32]>,
    ) -> Var;

    /// Scores of a split, of which nothing was added yet.
    fn scorer(&self) -> Box<dyn Scorer + '_>;
}

/// Scores of predictions, accumulated over the examples of a split.
pub trait Scorer: Send {
    /// Adds examples, arranged as those of [`Objective::loss`].
    fn add(&mut self, predictions: &Tensor, rows: &[u32], targets: &Targets);

    /// Scores by name; none if no example was added.
    fn scores(&self) -> Scores;

    /// The mean loss of the examples; 0 of none. Of weights with equal scores those with the smaller loss are better.
    fn loss(&self) -> f64;

    /// The most bytes of memory that each value of the predictions takes until the end; 0 if examples are counted only.
    fn bytes_per_value(&self) -> usize {
        0
    }

    /// Counts the classes of the examples that are added from here on, where an example has one.
    fn count_classes(&mut self) {}

    /// Counts of each class, if they are taken; see [`Scorer::count_classes`].
    fn classes(&self) -> Option<ClassScores> {
        None
    }
}
