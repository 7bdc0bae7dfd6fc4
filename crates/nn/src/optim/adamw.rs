//! AdamW (Loshchilov & Hutter, ICLR 2019): weight decay apart from the gradient.

use gnarl_common::error::Result;

use super::{Optimizer, moments::Moments};

/// Adam whose parameters shrink by `lr * weight_decay` each step.
#[derive(Debug, Clone)]
pub struct AdamW {
    moments: Moments,
    weight_decay: f32,
}

impl AdamW {
    /// AdamW with the given moment decays.
    pub fn new(beta1: f32, beta2: f32, eps: f32, weight_decay: f32) -> Self {
        Self { moments: Moments::new(beta1, beta2, eps), weight_decay }
    }
}

impl Optimizer for AdamW {
    fn name(&self) -> &'static str {
        "adamw"
    }

    fn step(&mut self, params: &mut [f32], grads: &[f32], lr: f32) {
        self.moments.step(params, grads, lr, 0.0, lr * self.weight_decay);
    }

    fn moments(&mut self, weights: usize) -> Vec<&mut [f32]> {
        self.moments.both(weights)
    }

    fn state(&self) -> Vec<(String, Vec<f32>)> {
        self.moments.state()
    }

    fn load_state(&mut self, state: &[(String, Vec<f32>)]) -> Result<()> {
        self.moments.load(state)
    }
}
