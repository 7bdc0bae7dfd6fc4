//! Lazy Adam (Kingma & Ba, ICLR 2015) for sparsely updated embeddings.

use gnarl_common::{Error, Result, multiversion};

use super::{SparseOptimizer, at_least_0};

/// Lazy Adam: the moments of a row decay only when it is updated.
///
/// The step is the arithmetic of PyTorch's `SparseAdam`, with `eps` beside the uncorrected root.
/// But the steps in the bias correction are counted per row, where PyTorch counts those of the
/// table: a row's moments average the gradients of its own updates, and a part without pushed
/// gradients need not learn of a step. So a row does not depend on how the table is split.
#[derive(Debug, Clone)]
pub struct SparseAdam {
    beta1: f32,
    beta2: f32,
    eps: f32,
}

impl SparseAdam {
    /// Adam with the given moment decays.
    ///
    /// # Errors
    /// If a decay is not in [0, 1), or `eps` is negative.
    pub fn new(beta1: f32, beta2: f32, eps: f32) -> Result<Self> {
        for (name, beta) in [("beta1", beta1), ("beta2", beta2)] {
            if !(0.0..1.0).contains(&beta) {
                return Err(Error::usage(format!(
                    "invalid {name} '{beta}' of sparse adam: expected a number in [0, 1)"
                )));
            }
        }
        at_least_0("sparse adam: eps", eps)?;
        Ok(Self { beta1, beta2, eps })
    }
}

impl SparseOptimizer for SparseAdam {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn state_len(&self, width: usize) -> usize {
        2 * width
    }

    fn step(&self, step: u32, row: &mut [f32], state: &mut [f32], grad: &[f32], lr: f32) {
        let steps = i32::try_from(step).unwrap_or(i32::MAX);
        let correction1 = 1.0 - f64::from(self.beta1).powi(steps);
        let correction2 = 1.0 - f64::from(self.beta2).powi(steps);
        let rate = (f64::from(lr) * correction2.sqrt() / correction1) as f32;
        let moments = state.split_at_mut(row.len());
        adam(row, moments, grad, (1.0 - self.beta1, 1.0 - self.beta2), rate, self.eps);
    }
}

multiversion! {
    /// Updates a row and its moments; `new` weighs the gradient, and its square, in them.
    fn adam(
        row: &mut [f32],
        moments: (&mut [f32], &mut [f32]),
        grad: &[f32],
        new: (f32, f32),
        rate: f32,
        eps: f32,
    ) {
        for (((p, m), v), &g) in row.iter_mut().zip(moments.0).zip(moments.1).zip(grad) {
            *m += (g - *m) * new.0;
            *v += (g * g - *v) * new.1;
            *p -= rate * *m / (v.sqrt() + eps);
        }
    }
}
