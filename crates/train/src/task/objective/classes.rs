//! One class per example: cross-entropy.

use gnarl_common::{Error, Result};
use gnarl_graph::Labels;
use gnarl_nn::metrics::{self, Metric};
use gnarl_nn::{Tape, Tensor, Var};

use super::compare::{Objective, Scorer};
use super::targets::Targets;
use crate::evaluation::Scores;

/// Classification, scored by one metric.
pub(super) struct Classes {
    /// As run files name it.
    name: String,
    key: String,
}

impl Classes {
    /// Scored by `metric`, or by the accuracy.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the metric is unknown.
    pub fn new(metric: Option<&str>) -> Result<Self> {
        let name = metric.unwrap_or("accuracy").to_string();
        metrics::build(&name)?;
        Ok(Self { key: name.replace('-', "_"), name })
    }
}

impl Objective for Classes {
    fn outputs(&self, labels: &Labels) -> Result<usize> {
        match labels {
            Labels::Single { count, .. } => Ok(*count),
            _ => Err(Error::usage("classification needs one class per example")),
        }
    }

    fn metric(&self) -> &str {
        &self.key
    }

    fn loss(
        &self,
        tape: &mut Tape<'_>,
        predictions: Var,
        rows: &[u32],
        targets: &Targets,
        weights: Option<&[f32]>,
    ) -> Var {
        let Targets::Classes(classes) = targets else { unreachable!("labels are classes") };
        tape.cross_entropy(predictions, rows, classes, weights, 1.0)
    }

    fn scorer(&self) -> Box<dyn Scorer + '_> {
        let metric = metrics::build(&self.name).expect("a known metric");
        Box::new(ClassScorer { metric, key: &self.key, loss: 0.0, examples: 0 })
    }
}

struct ClassScorer<'a> {
    metric: Box<dyn Metric>,
    key: &'a str,
    loss: f64,
    examples: usize,
}

impl Scorer for ClassScorer<'_> {
    fn add(&mut self, predictions: &Tensor, rows: &[u32], targets: &Targets) {
        let Targets::Classes(classes) = targets else { return };
        self.examples += classes.len();
        let of = |(&row, &class): (&u32, &u32)| {
            cross_entropy(predictions.row(row as usize), class as usize)
        };
        self.loss += rows.iter().zip(classes).map(of).sum::<f64>();
        let targets = metrics::Targets::Classes(classes);
        self.metric.update(predictions.data(), predictions.cols(), rows, targets);
    }

    fn scores(&self) -> Scores {
        let scores = [(self.key.to_string(), self.metric.value())];
        scores.into_iter().filter(|_| self.examples > 0).collect()
    }

    fn loss(&self) -> f64 {
        self.loss / self.examples.max(1) as f64
    }
}

/// Of one row of logits.
fn cross_entropy(logits: &[f32], class: usize) -> f64 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&x| f64::from(x - largest).exp()).sum();
    sum.ln() - f64::from(logits[class] - largest)
}
