//! Root mean squared error.

use super::deviations::Deviations;
use super::{Metric, Targets};

/// The root of the mean squared difference between prediction and target, the first column of a row.
#[derive(Debug, Default, Clone)]
pub struct Rmse(Deviations);

impl Metric for Rmse {
    fn name(&self) -> &'static str {
        "rmse"
    }

    fn update(&mut self, logits: &[f32], num_classes: usize, rows: &[u32], targets: Targets<'_>) {
        self.0.update(logits, num_classes, rows, targets);
    }

    /// A word, in an array that grew to twice as much, and a sorted copy.
    fn bytes_per_value(&self) -> usize {
        3 * size_of::<u64>()
    }

    fn state(&self) -> Vec<u64> {
        self.0.state()
    }

    fn merge(&mut self, state: &[u64]) {
        self.0.merge(state);
    }

    fn value(&self) -> f64 {
        self.0.mean(|x| x * x).sqrt()
    }
}
