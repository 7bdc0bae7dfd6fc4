//! One number per example: regression.

use gnarl_common::{Error, Result};
use gnarl_graph::Labels;
use gnarl_nn::losses::LossConfig;
use gnarl_nn::losses::values::ValueLoss;
use gnarl_nn::metrics::{self, Metric};
use gnarl_nn::{Tape, Tensor, Var};

use super::compare::{Objective, Scorer};
use super::targets::Targets;
use crate::evaluation::Scores;

/// Regression, scored by all metrics of numbers.
pub(super) struct Regression {
    /// The score that decides.
    metric: String,
    loss: Box<dyn ValueLoss>,
}

impl Regression {
    /// With the loss of `[loss]`; `metric`, or the root mean squared error, decides.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the metric or the loss is unknown.
    pub fn new(metric: Option<&str>, loss: &LossConfig) -> Result<Self> {
        let metric = metric.unwrap_or("rmse").to_string();
        metrics::build_of_values(&metric)?;
        Ok(Self { metric, loss: loss.of_values()? })
    }
}

impl Objective for Regression {
    fn outputs(&self, labels: &Labels) -> Result<usize> {
        match labels {
            Labels::Values { .. } => Ok(1),
            _ => Err(Error::usage("regression needs one number per example")),
        }
    }

    fn metric(&self) -> &str {
        &self.metric
    }

    fn loss(
        &self,
        tape: &mut Tape<'_>,
        predictions: Var,
        rows: &[u32],
        targets: &Targets,
        weights: Option<&[f32]>,
    ) -> Var {
        let Targets::Values(values) = targets else { unreachable!("labels are numbers") };
        tape.deviation_loss(predictions, rows, values, weights, |d| self.loss.of(d), 1.0)
    }

    fn scorer(&self) -> Box<dyn Scorer + '_> {
        let names = metrics::names_of_values().iter();
        let metrics = names.map(|name| metrics::build_of_values(name).expect("a known metric"));
        Box::new(ValueScorer {
            metrics: metrics.collect(),
            of: &*self.loss,
            loss: 0.0,
            examples: 0,
        })
    }
}

struct ValueScorer<'a> {
    metrics: Vec<Box<dyn Metric>>,
    of: &'a dyn ValueLoss,
    loss: f64,
    examples: usize,
}

impl Scorer for ValueScorer<'_> {
    fn add(&mut self, predictions: &Tensor, rows: &[u32], targets: &Targets) {
        let Targets::Values(values) = targets else { return };
        self.examples += values.len();
        let deviation = |(&row, value): (&u32, &f32)| predictions.row(row as usize)[0] - value;
        let losses = rows.iter().zip(values).map(deviation).map(|d| f64::from(self.of.of(d).0));
        self.loss += losses.sum::<f64>();
        for metric in &mut self.metrics {
            metric.update(predictions.data(), 1, rows, metrics::Targets::Values(values));
        }
    }

    fn scores(&self) -> Scores {
        let named = self.metrics.iter().map(|metric| (metric.name().to_string(), metric.value()));
        named.filter(|_| self.examples > 0).collect()
    }

    fn loss(&self) -> f64 {
        self.loss / self.examples.max(1) as f64
    }

    fn bytes_per_value(&self) -> usize {
        self.metrics.iter().map(|metric| metric.bytes_per_value()).sum()
    }
}
