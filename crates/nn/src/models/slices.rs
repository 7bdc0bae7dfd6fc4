//! Layers whose rows are dense on the rank that owns them, and whose messages pass over columns.

use std::sync::OnceLock;

use gnarl_graph::Result;
use gnarl_sample::Block;

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
    /// The model's input if it is the same in every step, and what the first layer's messages make of it,
    /// once they have passed.
    pub input: Option<(Var, &'a OnceLock<Tensor>)>,
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
        let constant = self.input.filter(|(input, _)| *input == x).map(|(_, passed)| passed);
        if let Some(passed) = constant.and_then(OnceLock::get) {
            return Ok(tape.dense(passed.clone()));
        }
        let cols = tape.shape(x).1;
        let slice = tape.split(self.exchange, x)?;
        let passed = pass(tape, self.block, slice);
        let passed = tape.gather(self.exchange, passed, cols)?;
        if let Some(constant) = constant {
            constant.get_or_init(|| tape.value(passed).clone());
        }
        Ok(passed)
    }

    /// Whether a layer from `input` to `output` columns maps rows before it passes messages: the fewer
    /// columns, the less there is to exchange.
    pub(super) fn maps_first(
        &self,
        tape: &Tape<'_>,
        x: Var,
        (input, output): (usize, usize),
    ) -> bool {
        tape.is_sparse(x) || output < input
    }
}
