//! The dot product of head and tail.

use super::{Decoder, Side, Similarity};
use crate::{Params, Tensor};

/// `⟨h, t⟩`, whatever the relation.
pub(super) struct Dot {
    width: usize,
}

impl Dot {
    pub fn new(width: usize) -> Self {
        Self { width }
    }
}

impl Decoder for Dot {
    fn name(&self) -> &'static str {
        "dot"
    }

    fn width(&self) -> usize {
        self.width
    }

    fn relations(&self) -> Option<usize> {
        None
    }

    fn similarity<'a>(&self, _: &'a Params) -> Similarity<'a> {
        Similarity::Product
    }

    fn query(&self, _: &Params, _: Side, given: &Tensor, _: &[u32]) -> Tensor {
        given.clone()
    }

    fn query_backward(
        &self,
        _: &Params,
        _: Side,
        _: &Tensor,
        _: &[u32],
        query_grad: &Tensor,
        _: &mut [f32],
    ) -> Tensor {
        query_grad.clone()
    }
}
