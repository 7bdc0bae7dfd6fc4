//! GCN (Kipf & Welling, ICLR 2017).

use gnarl_graph::Result;
use gnarl_sample::Block;

use super::slices::Slices;
use super::stack::{After, Layer, Stack};
use super::{ModelConfig, transform_first};
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

/// `H' = σ(D̂^-½ Â D̂^-½ H W + b)`, eq. 2, with dropout on `H`.
pub(super) struct Gcn {
    weight: ParamId,
    bias: ParamId,
    dims: (usize, usize),
}

pub(super) fn build(config: &ModelConfig, params: &mut ParamsBuilder) -> Stack<Gcn> {
    let layer = |i| {
        let (input, output) = config.dims(i);
        let weight = params.add(format!("layer{i}.weight"), input, output, Init::XavierUniform);
        let bias = params.add(format!("layer{i}.bias"), 1, output, Init::Zeros);
        Gcn { weight, bias, dims: (input, output) }
    };
    Stack::new(config, (0..config.layers).map(layer).collect())
}

impl Layer for Gcn {
    const NAME: &'static str = "gcn";
    const DROPS_INPUT: bool = true;

    fn input(&self) -> usize {
        self.dims.0
    }

    fn apply<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var, after: After) -> Var {
        let y = if transform_first(tape, block, x, self.dims.0, self.dims.1) {
            let x = tape.linear(x, self.weight, None, Activation::None);
            let mixed = tape.gcn_norm(block, x);
            let bias = tape.param(self.bias);
            let sum = tape.add_row(mixed, bias);
            tape.activation(sum, after.activation)
        } else {
            let mixed = tape.gcn_norm(block, x);
            tape.linear(mixed, self.weight, Some(self.bias), after.activation)
        };
        after.drop(tape, block, y)
    }

    fn apply_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &Slices<'b>,
        x: Var,
        after: After,
    ) -> Result<Option<Var>> {
        let pass = |tape: &mut Tape<'b>, block, x| tape.gcn_norm(block, x);
        let y = if slices.maps_first(tape, x, self.dims) {
            // Of what is summed up and added to, backward needs no values: over a whole graph they are large.
            let x = tape.linear(x, self.weight, None, Activation::None);
            let mixed = slices.pass(tape, x, pass)?;
            tape.release(x);
            let bias = tape.param(self.bias);
            let sum = tape.add_row(mixed, bias);
            tape.release(mixed);
            tape.activation(sum, after.activation)
        } else {
            let mixed = slices.pass(tape, x, pass)?;
            tape.linear(mixed, self.weight, Some(self.bias), after.activation)
        };
        Ok(Some(tape.dropout(y, after.dropout, slices.ids)))
    }
}
