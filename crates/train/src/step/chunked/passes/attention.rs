//! Sums over neighbors weighted by attention.

use std::ops::Range;

use gnarl_common::rng::Key;
use gnarl_graph::blocks::Block;
use gnarl_nn::Tensor;
use gnarl_nn::ops::attend::slice::{Attended, AttendedGradient, AttentionSlice};
use gnarl_nn::ops::list_attention::Attention;

use super::{ColumnPass, Part};

/// Attention of each destination to its sources. Coefficients are computed for each column block again.
pub(super) struct AttentionPass<'a> {
    pub block: &'a Block,
    pub attention: Attention,
}

impl<'a> AttentionPass<'a> {
    fn attend(&self, columns: Range<usize>, key: Option<Key>, sent: Tensor) -> Attended<'a> {
        AttentionSlice::new(self.block, self.attention, columns, key).attend(sent)
    }
}

impl ColumnPass for AttentionPass<'_> {
    fn heads(&self) -> usize {
        self.attention.heads
    }

    fn draws(&self) -> u64 {
        1
    }

    fn reads_sent(&self) -> bool {
        true
    }

    fn forward(&self, columns: Range<usize>, key: Option<Key>, sent: Tensor) -> Box<dyn Part + '_> {
        Box::new(self.attend(columns, key, sent))
    }

    fn backward(
        &self,
        columns: Range<usize>,
        key: Option<Key>,
        sent: Option<Tensor>,
        grad: Tensor,
    ) -> Box<dyn Part + '_> {
        let sent = sent.expect("the pass reads what was sent");
        Box::new(self.attend(columns, key, sent).backward(grad))
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
