//! SGC (Wu et al., ICML 2019).

use gnarl_graph::error::Result;
use gnarl_sample::Block;

use super::stack::check_input;
use super::{Model, ModelConfig};
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

/// `S^K X W + b`, eq. 8: as many propagations as layers and one linear map. The map is applied
/// before the first propagation if it narrows the rows, after the last one otherwise; the result
/// is the same. Has no dropout.
pub(super) struct Sgc {
    config: ModelConfig,
    weight: ParamId,
    bias: ParamId,
}

impl Sgc {
    pub(super) fn new(config: &ModelConfig, params: &mut ParamsBuilder) -> Self {
        let (input, output) = (config.in_dim, config.out_dim);
        let weight = params.add("weight", input, output, Init::XavierUniform);
        let bias = params.add("bias", 1, output, Init::Zeros);
        Self { config: config.clone(), weight, bias }
    }
}

impl Model for Sgc {
    fn name(&self) -> &str {
        "sgc"
    }

    fn num_layers(&self) -> usize {
        self.config.layers
    }

    fn layer<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        block: &'b Block,
        x: Var,
    ) -> Result<Var> {
        let (input, output) = (self.config.in_dim, self.config.out_dim);
        let narrow_first = input > output;
        let width = if narrow_first && index > 0 { output } else { input };
        check_input("sgc", tape, index, block, x, width)?;
        let mut x = x;
        if narrow_first && index == 0 {
            x = tape.linear(x, self.weight, None, Activation::None);
        } else if tape.is_sparse(x) {
            x = tape.densify(x);
        }
        let mixed = tape.gcn_norm(block, x);
        if index + 1 < self.config.layers {
            Ok(mixed)
        } else if narrow_first {
            let bias = tape.param(self.bias);
            Ok(tape.add_row(mixed, bias))
        } else {
            Ok(tape.linear(mixed, self.weight, Some(self.bias), Activation::None))
        }
    }
}
