//! Adam (Kingma & Ba, ICLR 2015), with the L2 penalty inside the gradient.

use gnarl_common::error::Result;

use super::{Optimizer, moments::Moments};

/// Adam; `weight_decay` is an L2 penalty, as in the reference code of GCN and GAT.
#[derive(Debug, Clone)]
pub struct Adam {
    moments: Moments,
    weight_decay: f32,
}

impl Adam {
    /// Adam with the given moment decays.
    pub fn new(beta1: f32, beta2: f32, eps: f32, weight_decay: f32) -> Self {
        Self { moments: Moments::new(beta1, beta2, eps), weight_decay }
    }
}

impl Optimizer for Adam {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn step(&mut self, params: &mut [f32], grads: &[f32], lr: f32) {
        self.moments.step(params, grads, lr, self.weight_decay, 0.0);
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
