//! Binary cross-entropy: positives against negatives, one by one.

use super::loss::{Loss, counted, softplus};
use crate::kernel::math::sigmoid;

/// `log(1 + e^{−p})` and the mean of `log(1 + e^{nᵢ})`.
pub(super) struct Bce;

impl Loss for Bce {
    fn name(&self) -> &'static str {
        "bce"
    }

    fn row(&self, positive: f32, negatives: &[f32], grads: &mut [f32]) -> (f32, f32) {
        let share = 1.0 / counted(negatives).max(1) as f32;
        let mut sum = 0.0;
        for (grad, &score) in grads.iter_mut().zip(negatives) {
            *grad = if score.is_finite() { share * sigmoid(score) } else { 0.0 };
            sum += softplus(score);
        }
        (softplus(-positive) + share * sum, -sigmoid(-positive))
    }
}
