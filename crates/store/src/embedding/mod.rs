//! Embeddings: learned vectors of nodes without features.
//!
//! Each row has one owner, to which gradients are pushed (DistDGLv2, Zheng et al., KDD 2022,
//! section 5.4). The owner's [`Embedding`] updates only the rows with gradients by a
//! [`SparseOptimizer`], one file per rule. A table is in memory or, larger than that, in mapped files.
//!
//! ```
//! use std::sync::Arc;
//!
//! use gnarl_common::rng::Key;
//! use gnarl_store::RowSource;
//! use gnarl_store::embedding::{Embedding, SparseAdam};
//!
//! let adam = Arc::new(SparseAdam::new(0.9, 0.999, 1e-8)?);
//! let mut table = Embedding::new(vec![10, 11, 42], 2, 0.1, Key::new(1), adam)?;
//! let mut before = [0.0; 2];
//! table.fetch(&[42], &mut before)?;
//! table.update(&[42, 10, 42], &[1.0, 0.0, 3.0, 3.0, 1.0, 0.0], 0.01)?;
//! let mut after = [0.0; 2];
//! table.fetch(&[42], &mut after)?;
//! assert!(after[0] < before[0] && after[1] == before[1]);
//! # Ok::<(), gnarl_common::Error>(())
//! ```

mod adagrad;
mod adam;
mod decay;
mod held;
mod ids;
mod row_adagrad;
mod sum;
mod table;
mod update;

pub use adagrad::SparseAdagrad;
pub use adam::SparseAdam;
pub use decay::WeightDecay;
pub use ids::{Ids, Nodes};
pub use row_adagrad::RowAdagrad;
pub use sum::Summed;
pub use table::Embedding;

use gnarl_common::{Error, Result};

/// A rule that updates one row from its gradient and its optimizer state.
pub trait SparseOptimizer: Send + Sync {
    /// The name in checkpoints.
    fn name(&self) -> &'static str;

    /// Number of state values of a row of `width` values.
    fn state_len(&self, width: usize) -> usize;

    /// Updates `row` in place from `grad` of the same length, with learning rate `lr`. `state` has
    /// [`SparseOptimizer::state_len`] values, zeros at first. `step` counts the updates of this row, this
    /// one included.
    fn step(&self, step: u32, row: &mut [f32], state: &mut [f32], grad: &[f32], lr: f32);
}

/// Checks a constant of an optimizer.
fn at_least_0(what: &str, value: f32) -> Result<()> {
    match value >= 0.0 && value.is_finite() {
        true => Ok(()),
        false => {
            Err(Error::usage(format!("invalid {what} '{value}': expected a number of at least 0")))
        }
    }
}

#[cfg(test)]
mod tests;
