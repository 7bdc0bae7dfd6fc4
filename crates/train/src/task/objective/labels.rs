//! Any number of labels per example: binary cross-entropy, the mean over labels.

use gnarl_common::{Error, Result};
use gnarl_graph::Labels;
use gnarl_nn::metrics::{self, Metric};
use gnarl_nn::{Tape, Tensor, Var};

use super::compare::{Objective, Scorer};
use super::targets::Targets;
use crate::evaluation::Scores;

/// Multi-label classification, scored by one metric.
pub(super) struct MultiLabel {
    /// As run files name it.
    name: String,
    key: String,
}

impl MultiLabel {
    /// Scored by `metric`, or by micro-F1.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the metric is unknown.
    pub fn new(metric: Option<&str>) -> Result<Self> {
        let name = metric.unwrap_or("micro-f1").to_string();
        metrics::build(&name)?;
        Ok(Self { key: name.replace('-', "_"), name })
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
        let Targets::Multi(values) = targets else { unreachable!("labels are rows of 0 and 1") };
        tape.bce_with_logits(predictions, rows, values, weights, 1.0)
    }

    fn scorer(&self) -> Box<dyn Scorer + '_> {
        let metric = metrics::build(&self.name).expect("a known metric");
        Box::new(LabelScorer { metric, key: &self.key, loss: 0.0, examples: 0 })
    }
}

struct LabelScorer<'a> {
    metric: Box<dyn Metric>,
    key: &'a str,
    loss: f64,
    examples: usize,
}

impl Scorer for LabelScorer<'_> {
    fn add(&mut self, predictions: &Tensor, rows: &[u32], targets: &Targets) {
        let Targets::Multi(values) = targets else { return };
        let tasks = predictions.cols();
        self.examples += rows.len();
        let of = |(&row, marks): (&u32, &[f32])| mean_bce(predictions.row(row as usize), marks);
        self.loss += rows.iter().zip(values.chunks(tasks)).map(of).sum::<f64>();
        let marks: Vec<u8> = values.iter().map(|&mark| mark as u8).collect();
        self.metric.update(predictions.data(), tasks, rows, metrics::Targets::Multi(&marks));
    }

    fn scores(&self) -> Scores {
        let scores = [(self.key.to_string(), self.metric.value())];
        scores.into_iter().filter(|_| self.examples > 0).collect()
    }

    fn loss(&self) -> f64 {
        self.loss / self.examples.max(1) as f64
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
