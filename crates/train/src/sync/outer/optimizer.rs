//! The trait of outer optimizers.

use gnarl_common::Result;

use crate::state::OptimizerState;

/// A rule that moves the shared weights towards the average of the parts' weights. All ranks apply it to
/// the same numbers, so that it takes no message.
pub trait OuterOptimizer: Send {
    /// Updates `weights`, which all parts started from, given the `average` of what they came to, of the
    /// same length. `lr` is the learning rate the parts trained with.
    fn step(&mut self, weights: &mut [f32], average: &[f32], lr: f32);

    /// Everything a resumed run needs, by name.
    fn state(&self) -> OptimizerState;

    /// Restores what [`OuterOptimizer::state`] returned.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::InvalidInput`] if an entry is missing or of another length.
    fn load_state(&mut self, state: &OptimizerState) -> Result<()>;
}
