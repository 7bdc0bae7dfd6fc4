//! Plain averaging (CATGNN §3.3).

use gnarl_common::Result;

use super::optimizer::OuterOptimizer;
use crate::state::OptimizerState;

/// Takes the average as it is.
pub(super) struct Plain;

impl OuterOptimizer for Plain {
    fn step(&mut self, weights: &mut [f32], average: &[f32], _: f32) {
        weights.copy_from_slice(average);
    }

    fn state(&self) -> OptimizerState {
        Vec::new()
    }

    fn load_state(&mut self, _: &OptimizerState) -> Result<()> {
        Ok(())
    }
}
