//! Slow momentum (Wang et al., "SlowMo", ICLR 2020, Algorithm 1).

use gnarl_common::Result;

use super::optimizer::OuterOptimizer;
use super::velocity::Velocity;
use crate::state::OptimizerState;

/// Heavy-ball momentum over the averaged change: with `x` the weights, `x̄` their average after the parts
/// trained with rate `γ`, `u = momentum·u + (x - x̄) / γ`, then `x -= lr·γ·u`.
pub(super) struct SlowMo {
    lr: f32,
    momentum: f32,
    velocity: Velocity,
}

impl SlowMo {
    /// One of `weights` weights; with rate 1 and momentum 0 it takes the average as it is.
    pub fn new(lr: f32, momentum: f32, weights: usize) -> Self {
        Self { lr, momentum, velocity: Velocity::new(weights) }
    }
}

impl OuterOptimizer for SlowMo {
    fn step(&mut self, weights: &mut [f32], average: &[f32], lr: f32) {
        for ((x, &mean), u) in weights.iter_mut().zip(average).zip(&mut self.velocity.0) {
            *u = self.momentum * *u + (*x - mean) / lr;
            *x -= self.lr * lr * *u;
        }
    }

    fn state(&self) -> OptimizerState {
        self.velocity.state()
    }

    fn load_state(&mut self, state: &OptimizerState) -> Result<()> {
        self.velocity.load(state)
    }
}
