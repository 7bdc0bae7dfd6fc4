//! Margin ranking: positives are to score above negatives by a margin.

use super::loss::{Loss, counted};

/// The mean of `max(0, γ − p + nᵢ)`.
pub(super) struct Margin {
    pub margin: f32,
}

impl Loss for Margin {
    fn name(&self) -> &'static str {
        "margin"
    }

    fn row(&self, positive: f32, negatives: &[f32], grads: &mut [f32]) -> (f32, f32) {
        let share = 1.0 / counted(negatives).max(1) as f32;
        let (mut sum, mut to_positive) = (0.0, 0.0);
        for (grad, &score) in grads.iter_mut().zip(negatives) {
            let short = self.margin - positive + score;
            *grad = if short > 0.0 { share } else { 0.0 };
            to_positive -= *grad;
            sum += short.max(0.0);
        }
        (share * sum, to_positive)
    }
}
