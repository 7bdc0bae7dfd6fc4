//! Sums over neighbors weighted by attention.

use std::ops::Range;

use gnarl_graph::blocks::Block;
use gnarl_nn::Tensor;
use gnarl_nn::models::stages::Pass;
use gnarl_nn::ops::attend::slice::{Attended, AttendedGradient, AttentionSlice};
use gnarl_nn::ops::list_attention::Attention;

use super::column_pass::{ColumnPass, Made, Part, Random};

/// Attention of each destination to its sources. Coefficients are computed for each column block again.
pub(super) struct AttentionPass<'a> {
    pub block: &'a Block,
    pub attention: Attention,
}

impl<'a> AttentionPass<'a> {
    fn attend(&self, columns: Range<usize>, random: Random, sent: Tensor) -> Attended<'a> {
        let key = random.mode.key(random.draws + 1);
        AttentionSlice::new(self.block, self.attention, columns, key).attend(sent)
    }
}

impl ColumnPass for AttentionPass<'_> {
    fn pass(&self) -> Pass {
        Pass::Attention(self.attention)
    }

    fn forward(&self, columns: Range<usize>, random: Random, sent: Tensor) -> Made<'_> {
        Ok(Box::new(self.attend(columns, random, sent)))
    }

    fn backward(
        &self,
        columns: Range<usize>,
        random: Random,
        sent: Option<Tensor>,
        grad: Tensor,
    ) -> Made<'_> {
        let sent = sent.expect("the pass reads what was sent");
        Ok(Box::new(self.attend(columns, random, sent).backward(grad)))
    }
}

impl Part for Attended<'_> {
    fn rows(&self, first: usize, out: &mut [f32]) {
        self.sums(first, out);
    }
}

impl Part for AttendedGradient<'_> {
    fn rows(&self, first: usize, out: &mut [f32]) {
        self.gradients(first, out);
    }
}
