//! Any number of labels per example: binary cross-entropy, the mean over labels.

use gnarl_common::{Error, Result};
use gnarl_graph::Labels;
use gnarl_nn::metrics;
use gnarl_nn::{Tape, Tensor, Var};

use super::compare::{Objective, Scorer};
use super::metric::{MetricScores, NamedMetric};
use super::targets::Targets;
use crate::evaluation::Scores;

/// Multi-label classification, scored by one metric.
pub(super) struct MultiLabel(NamedMetric);

impl MultiLabel {
    /// Scored by `metric`, or by micro-F1.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the metric is unknown.
    pub fn new(metric: Option<&str>) -> Result<Self> {
        NamedMetric::new(metric.unwrap_or("micro-f1")).map(Self)
    }
}

impl Objective for MultiLabel {
    fn outputs(&self, labels: &Labels) -> Result<usize> {
        match labels {
            Labels::Multi { tasks, .. } => Ok(*tasks),
            _ => Err(Error::usage("multi-label classification needs rows of 0 and 1")),
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
        let Targets::Multi(values) = targets else { unreachable!("labels are rows of 0 and 1") };
        tape.bce_with_logits(predictions, rows, values, weights, 1.0)
    }

    fn scorer(&self) -> Box<dyn Scorer + '_> {
        Box::new(LabelScorer(self.0.scores()))
    }
}

struct LabelScorer<'a>(MetricScores<'a>);

impl Scorer for LabelScorer<'_> {
    fn add(&mut self, predictions: &Tensor, rows: &[u32], targets: &Targets) {
        let Targets::Multi(values) = targets else { return };
        let of = |(&row, marks): (&u32, &[f32])| mean_bce(predictions.row(row as usize), marks);
        let loss = rows.iter().zip(values.chunks(predictions.cols())).map(of).sum();
        let marks: Vec<u8> = values.iter().map(|&mark| mark as u8).collect();
        self.0.add(predictions, rows, metrics::Targets::Multi(&marks), loss);
    }

    fn scores(&self) -> Scores {
        self.0.scores()
    }

    fn loss(&self) -> f64 {
        self.0.loss()
    }

    fn bytes_per_value(&self) -> usize {
        self.0.bytes_per_value()
    }
}

/// Of one row of logits, the mean over labels.
fn mean_bce(logits: &[f32], marks: &[f32]) -> f64 {
    let each = logits.iter().zip(marks).map(|(&x, &mark)| {
        let x = f64::from(x);
        x.max(0.0) - x * f64::from(mark) + (-x.abs()).exp().ln_1p()
    });
    each.sum::<f64>() / marks.len() as f64
}
