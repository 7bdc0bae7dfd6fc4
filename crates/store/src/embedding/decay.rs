//! The L2 penalty, combined with any rule.

use std::sync::Arc;

use gnarl_common::Result;

use super::{SparseOptimizer, at_least_0};

/// A rule whose gradients include that of `decay / 2 · ‖row‖²`.
///
/// A row is decayed only when it is updated, so that a step costs no more than the rows of its
/// batch.
#[derive(Clone)]
pub struct WeightDecay {
    rule: Arc<dyn SparseOptimizer>,
    decay: f32,
}

impl WeightDecay {
    /// The penalty `decay` on the rows that `rule` updates.
    ///
    /// # Errors
    /// If `decay` is negative.
    pub fn new(rule: Arc<dyn SparseOptimizer>, decay: f32) -> Result<Self> {
        at_least_0("weight decay of embeddings", decay)?;
        Ok(Self { rule, decay })
    }
}

impl SparseOptimizer for WeightDecay {
    /// The name of the wrapped rule: both have the same state.
    fn name(&self) -> &'static str {
        self.rule.name()
    }

    fn state_len(&self, width: usize) -> usize {
        self.rule.state_len(width)
    }

    fn step(&self, step: u32, row: &mut [f32], state: &mut [f32], grad: &[f32], lr: f32) {
        let penalized: Vec<f32> = grad.iter().zip(&*row).map(|(g, p)| g + self.decay * p).collect();
        self.rule.step(step, row, state, &penalized, lr);
    }
}
