//! Saved activations: the inputs of stages, from which backward passes recompute.

use std::sync::Arc;

use super::matrix::Matrix;

/// The inputs of a stage, for all own rows.
pub(super) struct Held {
    /// Aggregated messages; none for the first stage.
    pub passed: Option<Arc<Matrix>>,
    pub kept: Kept,
    /// Number of random draws before the stage.
    pub draws: u64,
    /// True if any earlier stage has parameters to learn.
    pub learns: bool,
}

/// Values kept by the previous stage.
#[derive(Clone)]
pub(super) enum Kept {
    Nothing,
    /// The model's input features.
    Input,
    Rows(Arc<Matrix>),
}

impl Held {
    /// The inputs of the first stage.
    pub fn input() -> Self {
        Self { passed: None, kept: Kept::Nothing, draws: 0, learns: false }
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
    pub fn held(self) -> Held {
        let kept = match self.kept {
            Some(rows) => Kept::Rows(Arc::new(rows)),
            None if self.keeps_input => Kept::Input,
            None => Kept::Nothing,
        };
        Held { passed: None, kept, draws: self.draws, learns: self.learns }
    }
}
