//! GCN (Kipf & Welling, ICLR 2017).

use gnarl_graph::blocks::Block;

use super::stack::{After, Layer, Stack, StackStages, StagedLayer};
use super::stages::{Incoming, Outgoing, Pass, Stages};
use super::{ModelConfig, transform_first};
use crate::ops::pass::Operator;
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

    fn stages(stack: &Stack<Self>, sparse: bool) -> Option<Box<dyn Stages + '_>> {
        Some(Box::new(StackStages { stack, sparse }))
    }
}

impl StagedLayer for Gcn {
    fn dims(&self) -> (usize, usize) {
        self.dims
    }

    fn send(&self, tape: &mut Tape<'_>, x: Var, narrow: bool) -> Outgoing {
        if !narrow {
            return Outgoing { sent: x, kept: None };
        }
        let sent = tape.linear(x, self.weight, None, Activation::None);
        tape.release(x);
        Outgoing { sent, kept: None }
    }

    fn pass(&self) -> Pass {
        Pass::once(Operator::Gcn)
    }

    fn receive(&self, tape: &mut Tape<'_>, rows: Incoming, narrow: bool, act: Activation) -> Var {
        if !narrow {
            return tape.linear(rows.passed, self.weight, Some(self.bias), act);
        }
        let bias = tape.param(self.bias);
        let sum = tape.add_row_last(rows.passed, bias);
        tape.activation_last(sum, act)
    }
}
