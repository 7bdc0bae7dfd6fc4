//! Tensor-parallel layers: dense computation by node range, message passing by feature slice.

use std::sync::{Arc, OnceLock};

use gnarl_common::Result;
use gnarl_graph::blocks::Block;

use crate::exchange::Exchange;
use crate::{Tape, Tensor, Var};

/// The inputs of message passing over feature slices (NeutronTP, section 3.1).
pub struct Slices<'a> {
    /// The edges of each pass. The last block is that of all further passes: one that has every node as a source and as a
    /// destination is enough for a whole graph. Blocks with fewer destinations than sources require that one rank has all
    /// rows; there must be one for each layer then, and [`Model::is_layered`](super::Model::is_layered).
    pub blocks: &'a [Arc<Block>],
    /// Dataset ids of this rank's own nodes, sources of the first block.
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
    /// True if outputs are computed for evaluation alone.
    only_evaluates: bool,
}

impl Remembered {
    /// The cache of a model that is evaluated on the input, and not trained.
    pub fn of_evaluation() -> Self {
        Self { only_evaluates: true, ..Self::default() }
    }

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
    /// The edges of pass `index`.
    pub(super) fn block(&self, index: usize) -> &'b Block {
        &self.blocks[index.min(self.blocks.len() - 1)]
    }

    /// Dataset ids of the own nodes that are left after `passes` passes.
    pub(super) fn ids_after(&self, passes: usize) -> &'b [u64] {
        let narrows = |block: &&Arc<Block>| block.num_dst() < block.num_src();
        match self.blocks[..passes.min(self.blocks.len())].iter().rfind(narrows) {
            Some(last) => &self.ids[..last.num_dst()],
            None => self.ids,
        }
    }

    /// Own rows of `pass`, a column-wise function of a feature slice of `x` over all nodes, as pass `index`. No layer calls
    /// it twice on one `x`.
    ///
    /// # Errors
    /// If a rank fails.
    pub(super) fn pass(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        x: Var,
        pass: impl FnOnce(&mut Tape<'b>, &'b Block, Var) -> Var,
    ) -> Result<Var> {
        let constant = self.input.filter(|(input, _)| *input == x).map(|(_, first)| first);
        if let Some(passed) = constant.and_then(|first| first.passed.get()) {
            return Ok(tape.dense(passed.clone()));
        }
        let cols = tape.shape(x).1;
        let slice = tape.split(self.exchange, x)?;
        let passed = pass(tape, self.block(index), slice);
        let passed = tape.gather(self.exchange, passed, cols)?;
        // Outside training nothing is dropped, so that inputs look constant which are not.
        let stays = |first: &&Remembered| tape.is_training() || first.only_evaluates;
        if let Some(constant) = constant.filter(stays) {
            constant.passed.get_or_init(|| tape.value(passed).clone());
        }
        Ok(passed)
    }
}
