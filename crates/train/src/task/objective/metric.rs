//! One metric of labels by name, and its scores: shared by the objectives of labels.

use gnarl_common::Result;
use gnarl_nn::Tensor;
use gnarl_nn::metrics::{self, Metric};

use crate::evaluation::Scores;

/// A metric of classes or of several labels.
pub(super) struct NamedMetric {
    /// As run files name it.
    name: String,
    /// As scores do.
    pub key: String,
}

impl NamedMetric {
    /// The metric `name`.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if it is unknown.
    pub fn new(name: &str) -> Result<Self> {
        metrics::build(name)?;
        Ok(Self { name: name.into(), key: name.replace('-', "_") })
    }

    /// Its scores, of no example yet.
    pub fn scores(&self) -> MetricScores<'_> {
        let metric = metrics::build(&self.name).expect("a known metric");
        MetricScores { metric, key: &self.key, loss: 0.0, examples: 0 }
    }
}

/// A metric and the loss, accumulated over examples.
pub(super) struct MetricScores<'a> {
    metric: Box<dyn Metric>,
    key: &'a str,
    loss: f64,
    examples: usize,
}

impl MetricScores<'_> {
    /// Adds examples, whose losses sum up to `loss`: row `rows[i]` of `predictions` belongs to target `i`.
    pub fn add(
        &mut self,
        predictions: &Tensor,
        rows: &[u32],
        targets: metrics::Targets<'_>,
        loss: f64,
    ) {
        self.examples += rows.len();
        self.loss += loss;
        self.metric.update(predictions.data(), predictions.cols(), rows, targets);
    }

    /// The score by its key; none if no example was added.
    pub fn scores(&self) -> Scores {
        let scores = [(self.key.to_string(), self.metric.value())];
        scores.into_iter().filter(|_| self.examples > 0).collect()
    }

    /// As [`Metric::bytes_per_value`].
    pub fn bytes_per_value(&self) -> usize {
        self.metric.bytes_per_value()
    }

    /// The mean loss; 0 of no example.
    pub fn loss(&self) -> f64 {
        self.loss / self.examples.max(1) as f64
    }
}
