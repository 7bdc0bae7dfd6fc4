//! Passes by the operations of a tape, over a whole column block at a time.

use std::ops::Range;

use gnarl_common::rng::Key;
use gnarl_graph::blocks::Block;
use gnarl_nn::models::stages::Pass;
use gnarl_nn::{Params, ParamsBuilder, Tape, Tensor};

use super::column_pass::{ColumnPass, Made, Part, Random};
use crate::step::chunked::matrix::copy;

/// Any pass. Its backward pass runs it forward again.
pub(super) struct TapedPass<'a> {
    pass: Pass,
    block: &'a Block,
    /// Empty: passes have none.
    params: Params,
}

/// The results for all nodes.
struct Whole(Tensor);

impl<'a> TapedPass<'a> {
    pub fn new(pass: Pass, block: &'a Block) -> Self {
        Self { pass, block, params: ParamsBuilder::new(Key::new(0)).build() }
    }

    fn tape(&self, random: Random) -> Tape<'_> {
        Tape::after(&self.params, random.mode, random.draws)
    }
}

impl ColumnPass for TapedPass<'_> {
    fn pass(&self) -> Pass {
        self.pass
    }

    fn forward(&self, _: Range<usize>, random: Random, sent: Tensor) -> Made<'_> {
        let mut tape = self.tape(random);
        let rows = tape.dense(sent);
        let passed = self.pass.apply(&mut tape, self.block, rows);
        Ok(Box::new(Whole(tape.take(passed))))
    }

    fn backward(
        &self,
        _: Range<usize>,
        random: Random,
        sent: Option<Tensor>,
        grad: Tensor,
    ) -> Made<'_> {
        let sent = sent.expect("the pass reads what was sent");
        let (nodes, cols) = sent.shape();
        let mut tape = self.tape(random);
        let rows = tape.leaf(sent);
        let passed = self.pass.apply(&mut tape, self.block, rows);
        tape.backward_from([(passed, grad)], &mut [])?;
        let to_rows = tape.grad(rows).cloned();
        Ok(Box::new(Whole(to_rows.unwrap_or_else(|| Tensor::zeros(nodes, cols)))))
    }
}

impl Part for Whole {
    fn rows(&self, first: usize, out: &mut [f32]) {
        let start = first * self.0.cols();
        copy(out, &self.0.data()[start..]);
    }
}
