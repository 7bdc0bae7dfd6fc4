//! One class per example: cross-entropy.

use gnarl_common::{Error, Result};
use gnarl_graph::Labels;
use gnarl_nn::metrics;
use gnarl_nn::{Tape, Tensor, Var};

use super::compare::{Objective, Scorer};
use super::metric::{MetricScores, NamedMetric};
use super::targets::Targets;
use crate::evaluation::{ClassScores, Confusion, Scores};

/// Classification, scored by one metric.
pub(super) struct Classes(NamedMetric);

impl Classes {
    /// Scored by `metric`, or by the accuracy.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the metric is unknown.
    pub fn new(metric: Option<&str>) -> Result<Self> {
        NamedMetric::new(metric.unwrap_or("accuracy")).map(Self)
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
        &self.0.key
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
        Box::new(ClassScorer { scores: self.0.scores(), confusion: None })
    }
}

struct ClassScorer<'a> {
    scores: MetricScores<'a>,
    /// None unless classes are counted.
    confusion: Option<Confusion>,
}

impl Scorer for ClassScorer<'_> {
    fn add(&mut self, predictions: &Tensor, rows: &[u32], targets: &Targets) {
        let Targets::Classes(classes) = targets else { return };
        let of = |(&row, &class): (&u32, &u32)| {
            let logits = predictions.row(row as usize);
            if let Some(confusion) = &mut self.confusion {
                confusion.add(logits.len(), class as usize, metrics::argmax(logits));
            }
            cross_entropy(logits, class as usize)
        };
        let loss = rows.iter().zip(classes).map(of).sum();
        self.scores.add(predictions, rows, metrics::Targets::Classes(classes), loss);
    }

    fn scores(&self) -> Scores {
        self.scores.scores()
    }

    fn loss(&self) -> f64 {
        self.scores.loss()
    }

    fn bytes_per_value(&self) -> usize {
        self.scores.bytes_per_value()
    }

    fn count_classes(&mut self) {
        self.confusion.get_or_insert_default();
    }

    fn classes(&self) -> Option<ClassScores> {
        self.confusion.as_ref()?.scores()
    }
}

/// Of one row of logits.
fn cross_entropy(logits: &[f32], class: usize) -> f64 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&x| f64::from(x - largest).exp()).sum();
    sum.ln() - f64::from(logits[class] - largest)
}
