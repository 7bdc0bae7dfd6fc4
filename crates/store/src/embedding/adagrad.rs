//! Adagrad (Duchi, Hazan & Singer, JMLR 2011).

use gnarl_common::Result;

use super::{SparseOptimizer, at_least_0};

/// Elementwise Adagrad, as PyTorch's without learning-rate decay. Rows without a gradient would not
/// change, so that updating few of them is exact.
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
        at_least_0("eps of sparse adagrad", eps)?;
        Ok(Self { eps })
    }
}

impl SparseOptimizer for SparseAdagrad {
    fn name(&self) -> &'static str {
        "adagrad"
    }

    fn state_len(&self, width: usize) -> usize {
        width
    }

    fn step(&self, _: u32, row: &mut [f32], state: &mut [f32], grad: &[f32], lr: f32) {
        for ((p, sum), &g) in row.iter_mut().zip(state).zip(grad) {
            *sum += g * g;
            // A value that never had a gradient stays, even if eps is 0.
            if *sum > 0.0 {
                *p -= lr * g / (sum.sqrt() + self.eps);
            }
        }
    }
}
