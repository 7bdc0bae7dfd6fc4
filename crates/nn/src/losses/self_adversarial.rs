//! Self-adversarial negative sampling (Sun et al., ICLR 2019, equations 4 and 5).

use super::loss::{Loss, softplus};
use super::softmax::softmax;
use crate::kernel::math::sigmoid;

/// `−log σ(γ + p) − Σ wᵢ log σ(−γ − nᵢ)`, where the weights `wᵢ` are the softmax of `α nᵢ`, taken
/// as constants in the gradient. Scores are negated distances in the paper.
pub(super) struct SelfAdversarial {
    pub margin: f32,
    pub temperature: f32,
}

impl Loss for SelfAdversarial {
    fn name(&self) -> &'static str {
        "self-adversarial"
    }

    fn row(&self, positive: f32, negatives: &[f32], grads: &mut [f32]) -> (f32, f32) {
        softmax(grads, negatives, self.temperature, f32::NEG_INFINITY);
        let mut sum = softplus(-self.margin - positive);
        for (grad, &score) in grads.iter_mut().zip(negatives) {
            let weight = *grad;
            sum += weight * softplus(self.margin + score);
            *grad = weight * sigmoid(self.margin + score);
        }
        (sum, -sigmoid(-self.margin - positive))
    }
}
