//! The running moments of Adam and AdamW.

use gnarl_common::error::{Error, Result};
use rayon::prelude::*;

use super::optimizer::{CHUNK, entry};

/// Exponential averages of the gradient and of its square (Kingma & Ba, ICLR 2015, Alg. 1).
#[derive(Debug, Clone)]
pub(super) struct Moments {
    beta1: f32,
    beta2: f32,
    eps: f32,
    steps: u32,
    first: Vec<f32>,
    second: Vec<f32>,
}

/// Step counter limit, up to which an f32 is exact; the bias corrections are 1 long before.
const MAX_STEPS: u32 = 1 << 24;

impl Moments {
    pub(super) fn new(beta1: f32, beta2: f32, eps: f32) -> Self {
        Self { beta1, beta2, eps, steps: 0, first: Vec::new(), second: Vec::new() }
    }

    /// One update: `l2 * p` joins the gradient, `1 - shrink` scales the parameter first.
    pub(super) fn step(
        &mut self,
        params: &mut [f32],
        grads: &[f32],
        lr: f32,
        l2: f32,
        shrink: f32,
    ) {
        assert_eq!(params.len(), grads.len(), "one gradient a parameter");
        self.first.resize(params.len(), 0.0);
        self.second.resize(params.len(), 0.0);
        self.steps = (self.steps + 1).min(MAX_STEPS);
        let b1 = self.beta1;
        let b2 = self.beta2;
        let eps = self.eps;
        let correction1 = 1.0 - f64::from(b1).powi(self.steps as i32);
        let correction2 = 1.0 - f64::from(b2).powi(self.steps as i32);
        let rate = (f64::from(lr) / correction1) as f32;
        let root = (1.0 / correction2.sqrt()) as f32;
        params
            .par_chunks_mut(CHUNK)
            .zip(grads.par_chunks(CHUNK))
            .zip(self.first.par_chunks_mut(CHUNK))
            .zip(self.second.par_chunks_mut(CHUNK))
            .for_each(|(((params, grads), first), second)| {
                for (((p, &g), m), v) in params.iter_mut().zip(grads).zip(first).zip(second) {
                    let g = g + l2 * *p;
                    *m = b1 * *m + (1.0 - b1) * g;
                    *v = b2 * *v + (1.0 - b2) * g * g;
                    *p = *p * (1.0 - shrink) - rate * *m / (v.sqrt() * root + eps);
                }
            });
    }

    /// Both moments, of so many parameters.
    pub(super) fn both(&mut self, weights: usize) -> Vec<&mut [f32]> {
        self.first.resize(weights, 0.0);
        self.second.resize(weights, 0.0);
        vec![&mut self.first, &mut self.second]
    }

    pub(super) fn state(&self) -> Vec<(String, Vec<f32>)> {
        vec![
            ("steps".into(), vec![self.steps as f32]),
            ("first_moment".into(), self.first.clone()),
            ("second_moment".into(), self.second.clone()),
        ]
    }

    pub(super) fn load(&mut self, state: &[(String, Vec<f32>)]) -> Result<()> {
        let steps = entry(state, "steps")?;
        let (first, second) = (entry(state, "first_moment")?, entry(state, "second_moment")?);
        if steps.len() != 1 || first.len() != second.len() {
            return Err(Error::invalid(format!(
                "optimizer state: {} step counts, {} first and {} second moments",
                steps.len(),
                first.len(),
                second.len()
            )));
        }
        self.steps = steps[0] as u32;
        self.first = first.to_vec();
        self.second = second.to_vec();
        Ok(())
    }
}
