//! Saved activations: the inputs of stages, from which backward passes recompute.

use std::sync::Arc;

use super::matrix::Matrix;

/// The inputs of a stage, for all own rows.
pub(super) struct Saved {
    /// Aggregated messages; none for the first stage.
    pub passed: Option<Arc<Matrix>>,
    pub kept: Activations,
    /// Number of random draws before the stage.
    pub draws: u64,
    /// True if any earlier stage has parameters to learn.
    pub learns: bool,
}

/// Values kept by the previous stage.
#[derive(Clone)]
pub(super) enum Activations {
    Nothing,
    /// The model's input features.
    Input,
    Rows(Arc<Matrix>),
}

impl Saved {
    /// The inputs of the first stage.
    pub fn input() -> Self {
        Self { passed: None, kept: Activations::Nothing, draws: 0, learns: false }
    }

    /// A second handle, sharing the matrices.
    pub fn again(&self) -> Self {
        let (passed, kept) = (self.passed.clone(), self.kept.clone());
        Self { passed, kept, ..*self }
    }
}

/// The outputs of a stage over all row blocks.
#[derive(Default)]
pub(super) struct Next {
    pub kept: Option<Matrix>,
    pub keeps_input: bool,
    /// True if the stage sends and keeps nothing but the model's input.
    pub only_input: bool,
    pub draws: u64,
    pub learns: bool,
}

impl Next {
    /// The inputs of the next stage, without the aggregated messages.
    pub fn saved(self) -> Saved {
        let kept = match self.kept {
            Some(rows) => Activations::Rows(Arc::new(rows)),
            None if self.keeps_input => Activations::Input,
            None => Activations::Nothing,
        };
        Saved { passed: None, kept, draws: self.draws, learns: self.learns }
    }
}
