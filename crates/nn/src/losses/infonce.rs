//! InfoNCE (van den Oord, Li & Vinyals, 2018): cross-entropy of scores over a temperature.

use super::Loss;
use super::softmax::softmax;

/// `−p/τ + log(e^{p/τ} + Σ e^{nᵢ/τ})`.
pub(super) struct InfoNce {
    pub temperature: f32,
}

impl Loss for InfoNce {
    fn name(&self) -> &'static str {
        "infonce"
    }

    fn row(&self, positive: f32, negatives: &[f32], grads: &mut [f32]) -> (f32, f32) {
        let scale = self.temperature.recip();
        let total = softmax(grads, negatives, scale, scale * positive);
        grads.iter_mut().for_each(|grad| *grad *= scale);
        (total - scale * positive, scale * ((scale * positive - total).exp() - 1.0))
    }
}
