//! Layers whose rows are dense on the rank that owns them, and whose messages pass over columns.

use std::sync::OnceLock;

use gnarl_common::Result;
use gnarl_graph::blocks::Block;

use crate::exchange::Exchange;
use crate::{Tape, Tensor, Var};

/// What a layer needs to pass messages over slices of columns (NeutronTP, section 3.1).
pub struct Slices<'a> {
    /// The whole graph: every node is a source and a destination.
    pub block: &'a Block,
    /// Dataset ids of this rank's own nodes.
    pub ids: &'a [u64],
    /// How ranks exchange rows and columns.
    pub exchange: &'a dyn Exchange,
    /// The model's input if it is the same in every step, and what is remembered of it.
    pub input: Option<(Var, &'a Remembered)>,
}

/// What a model remembers of an input that is the same in every step.
#[derive(Debug, Default)]
pub struct Remembered {
    /// What the first layer's messages make of it, once they have passed.
    passed: OnceLock<Tensor>,
    /// Whether nothing else is made of it.
    only_passed: OnceLock<bool>,
}

impl Remembered {
    /// Whether the input itself is not read any more.
    pub fn suffices(&self) -> bool {
        self.passed.get().is_some() && self.only_passed.get() == Some(&true)
    }

    /// Takes note of whether the input is only sent.
    pub(super) fn note(&self, only_passed: bool) {
        self.only_passed.get_or_init(|| only_passed);
    }
}

impl<'b> Slices<'b> {
    /// Own rows of `pass`, which sees all rows of some columns of `x` and treats columns alike. No layer
    /// asks for two of one `x`.
    ///
    /// # Errors
    /// If a rank fails.
    pub(super) fn pass(
        &self,
        tape: &mut Tape<'b>,
        x: Var,
        pass: impl FnOnce(&mut Tape<'b>, &'b Block, Var) -> Var,
    ) -> Result<Var> {
        let constant = self.input.filter(|(input, _)| *input == x).map(|(_, first)| &first.passed);
        if let Some(passed) = constant.and_then(OnceLock::get) {
            return Ok(tape.dense(passed.clone()));
        }
        let cols = tape.shape(x).1;
        let slice = tape.split(self.exchange, x)?;
        let passed = pass(tape, self.block, slice);
        let passed = tape.gather(self.exchange, passed, cols)?;
        // Outside training nothing is dropped, and inputs look constant that are not.
        if let Some(constant) = constant.filter(|_| tape.is_training()) {
            constant.get_or_init(|| tape.value(passed).clone());
        }
        Ok(passed)
    }
}
