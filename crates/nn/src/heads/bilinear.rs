//! A bilinear form of head and tail per class.

use super::{EdgeRows, Head, HeadSizes};
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

/// `Σₖ wₖ꜀ (h A)ₖ (t B)ₖ + b꜀`: the forms of all classes share their factors (Kim et al., "Hadamard
/// Product for Low-rank Bilinear Pooling", ICLR 2017).
pub(super) struct Bilinear {
    head: ParamId,
    tail: ParamId,
    out: ParamId,
    bias: ParamId,
}

impl Bilinear {
    pub fn new(sizes: HeadSizes, rank: usize, params: &mut ParamsBuilder) -> Self {
        Self {
            head: params.add("decoder.head", sizes.width, rank, Init::XavierUniform),
            tail: params.add("decoder.tail", sizes.width, rank, Init::XavierUniform),
            out: params.add("decoder.out", rank, sizes.outputs, Init::XavierUniform),
            bias: params.add("decoder.bias", 1, sizes.outputs, Init::Zeros),
        }
    }
}

impl Head for Bilinear {
    fn name(&self) -> &'static str {
        "bilinear"
    }

    fn forward(&self, tape: &mut Tape<'_>, edges: EdgeRows) -> Var {
        let heads = tape.linear(edges.heads, self.head, None, Activation::None);
        let tails = tape.linear(edges.tails, self.tail, None, Activation::None);
        let product = tape.mul(heads, tails);
        tape.linear(product, self.out, Some(self.bias), Activation::None)
    }
}
