//! Stochastic gradient descent with optional momentum (Sutskever et al., ICML 2013).

use gnarl_common::error::Result;
use rayon::prelude::*;

use super::optimizer::{CHUNK, Optimizer, entry};

/// SGD: `b = momentum * b + g`, then `p -= lr * b`, or `p -= lr * (g + momentum * b)` with
/// Nesterov's look-ahead.
#[derive(Debug, Clone)]
pub struct Sgd {
    momentum: f32,
    nesterov: bool,
    weight_decay: f32,
    velocity: Vec<f32>,
}

impl Sgd {
    /// SGD; `momentum` 0 keeps no state.
    pub fn new(momentum: f32, nesterov: bool, weight_decay: f32) -> Self {
        Self { momentum, nesterov, weight_decay, velocity: Vec::new() }
    }
}

impl Optimizer for Sgd {
    fn name(&self) -> &'static str {
        "sgd"
    }

    fn step(&mut self, params: &mut [f32], grads: &[f32], lr: f32) {
        assert_eq!(params.len(), grads.len(), "one gradient a parameter");
        let momentum = self.momentum;
        let l2 = self.weight_decay;
        let nesterov = self.nesterov;
        let pairs = params.par_chunks_mut(CHUNK).zip(grads.par_chunks(CHUNK));
        if momentum == 0.0 {
            pairs.for_each(|(params, grads)| {
                for (p, &g) in params.iter_mut().zip(grads) {
                    *p -= lr * (g + l2 * *p);
                }
            });
            return;
        }
        self.velocity.resize(grads.len(), 0.0);
        pairs.zip(self.velocity.par_chunks_mut(CHUNK)).for_each(|((params, grads), velocity)| {
            for ((p, &g), b) in params.iter_mut().zip(grads).zip(velocity) {
                let g = g + l2 * *p;
                *b = momentum * *b + g;
                *p -= lr * if nesterov { g + momentum * *b } else { *b };
            }
        });
    }

    fn moments(&mut self, weights: usize) -> Vec<&mut [f32]> {
        if self.momentum == 0.0 {
            return Vec::new();
        }
        self.velocity.resize(weights, 0.0);
        vec![&mut self.velocity]
    }

    fn state(&self) -> Vec<(String, Vec<f32>)> {
        vec![("velocity".into(), self.velocity.clone())]
    }

    fn load_state(&mut self, state: &[(String, Vec<f32>)]) -> Result<()> {
        self.velocity = entry(state, "velocity")?.to_vec();
        Ok(())
    }
}
