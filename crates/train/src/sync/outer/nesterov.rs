//! Nesterov momentum over the averaged change (Douillard et al., "DiLoCo", 2023, Algorithm 1).

use gnarl_common::Result;

use super::optimizer::OuterOptimizer;
use super::velocity::Velocity;
use crate::state::OptimizerState;

/// SGD with Nesterov momentum that takes `Δ = x - x̄`, the change of the averaged weights with its sign
/// turned, as its gradient: `v = momentum·v + Δ`, then `x -= lr·(Δ + momentum·v)`.
pub(super) struct Nesterov {
    lr: f32,
    momentum: f32,
    velocity: Velocity,
}

impl Nesterov {
    /// One of `weights` weights; with rate 1 and momentum 0 it takes the average as it is.
    pub fn new(lr: f32, momentum: f32, weights: usize) -> Self {
        Self { lr, momentum, velocity: Velocity::new(weights) }
    }
}

impl OuterOptimizer for Nesterov {
    fn step(&mut self, weights: &mut [f32], average: &[f32], _: f32) {
        for ((x, &mean), v) in weights.iter_mut().zip(average).zip(&mut self.velocity.0) {
            let change = *x - mean;
            *v = self.momentum * *v + change;
            *x -= self.lr * (change + self.momentum * *v);
        }
    }

    fn state(&self) -> OptimizerState {
        self.velocity.state()
    }

    fn load_state(&mut self, state: &OptimizerState) -> Result<()> {
        self.velocity.load(state)
    }
}
