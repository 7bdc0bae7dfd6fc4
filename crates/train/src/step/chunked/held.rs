//! What stages are given: what backward passes start from.

use std::sync::Arc;

use super::matrix::Matrix;

/// What a stage is given, for all own rows.
pub(super) struct Held {
    /// What messages made; of the first stage nothing.
    pub passed: Option<Arc<Matrix>>,
    pub kept: Kept,
    /// How often anything random was drawn before the stage.
    pub draws: u64,
    /// Whether the stages before have anything to learn.
    pub learns: bool,
}

/// What the stage before kept.
#[derive(Clone)]
pub(super) enum Kept {
    Nothing,
    /// The features.
    Input,
    Rows(Arc<Matrix>),
}

impl Held {
    /// What the first stage is given.
    pub fn input() -> Self {
        Self { passed: None, kept: Kept::Nothing, draws: 0, learns: false }
    }

    /// The same, sharing its matrices.
    pub fn again(&self) -> Self {
        let (passed, kept) = (self.passed.clone(), self.kept.clone());
        Self { passed, kept, ..*self }
    }
}

/// What becomes of the pieces of a stage.
#[derive(Default)]
pub(super) struct Next {
    pub kept: Option<Matrix>,
    pub keeps_input: bool,
    /// Whether the stage sends and keeps nothing but the model's input.
    pub only_input: bool,
    pub draws: u64,
    pub learns: bool,
}

impl Next {
    /// What the next stage is given, but what messages will make.
    pub fn held(self) -> Held {
        let kept = match self.kept {
            Some(rows) => Kept::Rows(Arc::new(rows)),
            None if self.keeps_input => Kept::Input,
            None => Kept::Nothing,
        };
        Held { passed: None, kept, draws: self.draws, learns: self.learns }
    }
}
