//! Adagrad with one sum per row, as PyTorch-BigGraph's (Lerer et al., MLSys 2019, section 4) and DGL-KE's: the state of a
//! table is a value per row instead of a second table.

use gnarl_common::Result;

use super::{SparseOptimizer, at_least_0};

/// Adagrad over rows: a row's values share the sum of the mean squares of their gradients.
#[derive(Debug, Clone)]
pub struct RowAdagrad {
    eps: f32,
}

impl RowAdagrad {
    /// Adagrad with `eps` added to the root.
    ///
    /// # Errors
    /// If `eps` is negative.
    pub fn new(eps: f32) -> Result<Self> {
        at_least_0("eps of sparse adagrad", eps)?;
        Ok(Self { eps })
    }
}

impl SparseOptimizer for RowAdagrad {
    fn name(&self) -> &'static str {
        "row-adagrad"
    }

    fn state_len(&self, _: usize) -> usize {
        1
    }

    fn step(&self, _: u32, row: &mut [f32], state: &mut [f32], grad: &[f32], lr: f32) {
        let squares: f32 = grad.iter().map(|g| g * g).sum();
        state[0] += squares / row.len() as f32;
        // A row that never had a gradient stays, even if eps is 0.
        if state[0] > 0.0 {
            let rate = lr / (state[0].sqrt() + self.eps);
            row.iter_mut().zip(grad).for_each(|(p, g)| *p -= rate * g);
        }
    }
}
