//! The running sum of changes that outer optimizers with momentum keep.

use gnarl_common::{Error, Result};

use crate::state::OptimizerState;

/// Name of the saved values.
const ENTRY: &str = "velocity";

/// One value per weight.
pub(super) struct Velocity(pub Vec<f32>);

impl Velocity {
    /// Zeros for so many weights.
    pub fn new(weights: usize) -> Self {
        Self(vec![0.0; weights])
    }

    pub fn state(&self) -> OptimizerState {
        vec![(ENTRY.into(), self.0.clone())]
    }

    pub fn load(&mut self, state: &OptimizerState) -> Result<()> {
        let saved = state.iter().find(|(name, _)| name == ENTRY);
        let saved = saved.map(|(_, values)| values).filter(|values| values.len() == self.0.len());
        let saved = saved.ok_or_else(|| {
            Error::invalid(format!("it has no {ENTRY} of {} weights", self.0.len()))
                .hint("the checkpoint belongs to another average.outer")
        })?;
        self.0.copy_from_slice(saved);
        Ok(())
    }
}
