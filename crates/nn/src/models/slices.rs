//! Tensor-parallel layers: dense computation by node range, message passing by feature slice.

use std::sync::OnceLock;

use gnarl_common::Result;
use gnarl_graph::blocks::Block;

use crate::exchange::Exchange;
use crate::{Tape, Tensor, Var};

/// The inputs of message passing over feature slices (NeutronTP, section 3.1).
pub struct Slices<'a> {
    /// The whole graph: every node is a source and a destination.
    pub block: &'a Block,
    /// Dataset ids of this rank's own nodes.
    pub ids: &'a [u64],
    /// The exchange between node ranges and feature slices.
    pub exchange: &'a dyn Exchange,
    /// The model's input if it is constant over steps, and the cache of its first pass.
    pub input: Option<(Var, &'a Remembered)>,
}

/// The cache of a constant input.
#[derive(Debug, Default)]
pub struct Remembered {
    /// The first layer's aggregate of it.
    passed: OnceLock<Tensor>,
    /// True if the input is used for nothing else.
    only_passed: OnceLock<bool>,
}

impl Remembered {
    /// Returns whether the cache replaces the input from now on.
    pub fn suffices(&self) -> bool {
        self.passed.get().is_some() && self.only_passed.get() == Some(&true)
    }

    /// Records whether the input is only aggregated.
    pub(super) fn note(&self, only_passed: bool) {
        self.only_passed.get_or_init(|| only_passed);
    }
}

impl<'b> Slices<'b> {
    /// Own rows of `pass`, a column-wise function of a feature slice of `x` over all nodes. No
    /// layer calls it twice on one `x`.
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
        // Outside training nothing is dropped, so that inputs look constant which are not.
        if let Some(constant) = constant.filter(|_| tape.is_training()) {
            constant.get_or_init(|| tape.value(passed).clone());
        }
        Ok(passed)
    }
}
