//! Adagrad (Duchi, Hazan & Singer, JMLR 2011).

use gnarl_common::Result;

use super::{SparseOptimizer, at_least_0};

/// Adagrad by element, as PyTorch's without decay of the learning rate. Rows that are left alone
/// would not change, so updating few of them is exact.
#[derive(Debug, Clone)]
pub struct SparseAdagrad {
    eps: f32,
}

impl SparseAdagrad {
    /// Adagrad with `eps` added to the root.
    ///
    /// # Errors
    /// If `eps` is negative.
    pub fn new(eps: f32) -> Result<Self> {
        at_least_0("sparse adagrad: eps", eps)?;
        Ok(Self { eps })
    }
}

impl SparseOptimizer for SparseAdagrad {
    fn name(&self) -> &'static str {
        "adagrad"
    }

    fn state_size(&self) -> usize {
        1
    }

    fn step(&self, _: u32, row: &mut [f32], state: &mut [f32], grad: &[f32], lr: f32) {
        for ((p, sum), &g) in row.iter_mut().zip(state).zip(grad) {
            *sum += g * g;
            // A value that never had a gradient stays where it is, with an eps of 0 too.
            if *sum > 0.0 {
                *p -= lr * g / (sum.sqrt() + self.eps);
            }
        }
    }
}
