//! Layers whose rows are dense on the rank that owns them, and whose messages pass over columns.

use gnarl_graph::Result;
use gnarl_sample::Block;

use crate::exchange::Exchange;
use crate::{Tape, Var};

/// What a layer needs to pass messages over slices of columns (NeutronTP, section 3.1).
pub struct Slices<'a> {
    /// The whole graph: every node is a source and a destination.
    pub block: &'a Block,
    /// Dataset ids of this rank's own nodes.
    pub ids: &'a [u64],
    /// How ranks exchange rows and columns.
    pub exchange: &'a dyn Exchange,
}

impl<'b> Slices<'b> {
    /// Own rows of `pass`, which sees all rows of some columns of `x` and treats columns alike.
    ///
    /// # Errors
    /// If a rank fails.
    pub(super) fn pass(
        &self,
        tape: &mut Tape<'b>,
        x: Var,
        pass: impl FnOnce(&mut Tape<'b>, &'b Block, Var) -> Var,
    ) -> Result<Var> {
        let cols = tape.shape(x).1;
        let slice = tape.split(self.exchange, x)?;
        let passed = pass(tape, self.block, slice);
        tape.gather(self.exchange, passed, cols)
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
