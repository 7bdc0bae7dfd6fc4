//! The trait of optimizers, and shared helpers.

use gnarl_common::error::{Error, Result};

/// Elements per task; fixed, so that chunk borders never depend on the thread count.
pub(super) const CHUNK: usize = 1 << 14;

/// A rule that turns gradients into parameter updates.
pub trait Optimizer: Send {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// Updates `params` in place from `grads` of the same length, with learning rate `lr`.
    fn step(&mut self, params: &mut [f32], grads: &[f32], lr: f32);

    /// Running averages of the gradients, each with one value for each of `weights` parameters, and zeros before
    /// the first step; none if the rule keeps none. Workers that train apart may average them.
    fn moments(&mut self, _weights: usize) -> Vec<&mut [f32]> {
        Vec::new()
    }

    /// The state that a resumed run needs, by name. Empty before the first step of optimizers that
    /// allocate lazily.
    fn state(&self) -> Vec<(String, Vec<f32>)>;

    /// Restores the result of [`Optimizer::state`]. [`gnarl_common::error::Kind::InvalidInput`]
    /// if entries are missing or disagree in length.
    fn load_state(&mut self, state: &[(String, Vec<f32>)]) -> Result<()>;
}

/// The entry `name` of a saved state.
pub(super) fn entry<'a>(state: &'a [(String, Vec<f32>)], name: &str) -> Result<&'a [f32]> {
    state
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, values)| values.as_slice())
        .ok_or_else(|| Error::invalid(format!("optimizer state has no entry '{name}'")))
}
