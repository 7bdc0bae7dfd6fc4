//! Objectives: predictions of examples compared with their targets, as a loss and as scores. One file per kind of
//! targets; a program adds its own by [`Registry::add_task`](crate::Registry::add_task).

mod classes;
mod labels;
mod targets;
mod values;

use gnarl_common::{Error, Result};
use gnarl_config::{RunConfig, TaskKind};
use gnarl_graph::Labels;
use gnarl_nn::metrics::smaller_is_better;
use gnarl_nn::{Tape, Tensor, Var};

pub use targets::Targets;

use crate::evaluation::Scores;
use classes::Classes;
use labels::MultiLabel;
use values::Regression;

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
}

/// The objective of the library for such labels, as a run file asks for it.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] if the metric or the loss is none for such labels.
pub(crate) fn of_labels(config: &RunConfig, labels: &Labels) -> Result<Box<dyn Objective>> {
    let metric = config.train.metric.as_deref();
    let numbers = matches!(config.task.kind, TaskKind::NodeRegression | TaskKind::EdgeRegression);
    Ok(match labels {
        Labels::Values { .. } if numbers => Box::new(Regression::new(metric, &config.loss)?),
        Labels::Single { .. } if !numbers => Box::new(Classes::new(metric)?),
        Labels::Multi { .. } if !numbers => Box::new(MultiLabel::new(metric)?),
        Labels::Values { .. } => return Err(Error::usage("numbers are no classes")),
        _ => return Err(Error::usage("classes are no numbers")),
    })
}
