//! A diagonal bilinear form of head and tail per class.

use super::{EdgeRows, Head, HeadSizes};
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

/// `Σₖ wₖ꜀ hₖ tₖ + b꜀` (Yang et al., ICLR 2015, with classes as relations).
pub(super) struct DistMult {
    out: ParamId,
    bias: ParamId,
}

impl DistMult {
    pub fn new(sizes: HeadSizes, params: &mut ParamsBuilder) -> Self {
        Self {
            out: params.add("decoder.out", sizes.width, sizes.outputs, Init::XavierUniform),
            bias: params.add("decoder.bias", 1, sizes.outputs, Init::Zeros),
        }
    }
}

impl Head for DistMult {
    fn name(&self) -> &'static str {
        "distmult"
    }

    fn forward(&self, tape: &mut Tape<'_>, edges: EdgeRows) -> Var {
        let product = tape.mul(edges.heads, edges.tails);
        tape.linear(product, self.out, Some(self.bias), Activation::None)
    }
}
