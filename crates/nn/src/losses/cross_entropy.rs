//! Cross-entropy of the positive among its negatives.

use super::Loss;
use super::softmax::softmax;

/// `−p + log(eᵖ + Σ eⁿⁱ)`.
pub(super) struct CrossEntropy;

impl Loss for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross-entropy"
    }

    fn row(&self, positive: f32, negatives: &[f32], grads: &mut [f32]) -> (f32, f32) {
        let total = softmax(grads, negatives, 1.0, positive);
        (total - positive, (positive - total).exp() - 1.0)
    }
}
