//! Mean absolute error.

use super::deviations::Deviations;
use super::{Metric, Targets};

/// The mean absolute difference between prediction and target, the first column of a row.
#[derive(Debug, Default, Clone)]
pub struct Mae(Deviations);

impl Metric for Mae {
    fn name(&self) -> &'static str {
        "mae"
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
        self.0.mean(f64::abs)
    }
}
