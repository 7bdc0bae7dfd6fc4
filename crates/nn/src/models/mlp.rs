//! A multilayer perceptron: what features alone are worth.

use gnarl_sample::Block;

use super::ModelConfig;
use super::stack::{After, Layer, Stack};
use crate::{Init, ParamId, ParamsBuilder, Tape, Var};

/// A linear map of each node's own row; edges play no part.
pub(super) struct Mlp {
    weight: ParamId,
    bias: ParamId,
    input: usize,
}

pub(super) fn build(config: &ModelConfig, params: &mut ParamsBuilder) -> Stack<Mlp> {
    let layer = |i| {
        let (input, output) = config.dims(i);
        let weight = params.add(format!("layer{i}.weight"), input, output, Init::XavierUniform);
        let bias = params.add(format!("layer{i}.bias"), 1, output, Init::Zeros);
        Mlp { weight, bias, input }
    };
    Stack::new(config, (0..config.layers).map(layer).collect())
}

impl Layer for Mlp {
    const NAME: &'static str = "mlp";

    fn input(&self) -> usize {
        self.input
    }

    fn apply<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var, after: After) -> Var {
        let own = tape.head_rows(x, block.num_dst());
        let y = tape.linear(own, self.weight, Some(self.bias), after.activation);
        after.drop(tape, block, y)
    }
}
