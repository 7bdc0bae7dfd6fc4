//! Prediction and target pairs, accumulated for regression metrics.

use super::metric::{Targets, row_of};

/// Pairs of prediction and target as words. Sums over them are taken in sorted order, so that they
/// do not depend on which rank saw which.
#[derive(Debug, Default, Clone)]
pub(super) struct Deviations(Vec<u64>);

impl Deviations {
    /// Adds the rows of a batch whose targets are numbers.
    pub fn update(&mut self, predictions: &[f32], cols: usize, rows: &[u32], targets: Targets<'_>) {
        let Targets::Values(values) = targets else { return };
        let pairs = rows.iter().zip(values);
        self.0.extend(pairs.map(|(&row, value)| {
            let predicted = row_of(predictions, cols, row)[0];
            u64::from(predicted.to_bits()) << 32 | u64::from(value.to_bits())
        }));
    }

    pub fn state(&self) -> Vec<u64> {
        self.0.clone()
    }

    pub fn merge(&mut self, state: &[u64]) {
        self.0.extend(state);
    }

    /// The mean of a function of prediction less target; 0 of none.
    pub fn mean(&self, of: impl Fn(f64) -> f64) -> f64 {
        let mut words = self.0.clone();
        words.sort_unstable();
        let number = |bits: u64| f64::from(f32::from_bits(bits as u32));
        let sum: f64 = words.iter().map(|word| of(number(word >> 32) - number(*word))).sum();
        sum / words.len().max(1) as f64
    }
}
