//! NGNN (Song et al., "Network In Graph Neural Network", 2021) over GraphSAGE.

use gnarl_graph::blocks::Block;

use super::ModelConfig;
use super::sage::{Convolution, convolutions};
use super::stack::{After, Layer, Stack, StackStages, StagedLayer};
use super::stages::{Incoming, Outgoing, Pass, Stages};
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

/// GraphSAGE whose hidden layers go through one more linear map and activation: eq. 2 with one
/// inner layer, `h' = σ(σ(conv(h)) W + b)`. The last layer is a plain convolution.
pub(super) struct Ngnn {
    convolution: Convolution,
    inner: Option<(ParamId, ParamId)>,
}

pub(super) fn build(config: &ModelConfig, params: &mut ParamsBuilder) -> Stack<Ngnn> {
    let convolutions = convolutions(config, params);
    let layer = |(i, convolution)| {
        let inner = (i + 1 < config.layers).then(|| {
            let name = format!("layer{i}.inner.weight");
            let weight = params.add(name, config.hidden, config.hidden, Init::XavierUniform);
            (weight, params.add(format!("layer{i}.inner.bias"), 1, config.hidden, Init::Zeros))
        });
        Ngnn { convolution, inner }
    };
    Stack::new(config, convolutions.into_iter().enumerate().map(layer).collect())
}

impl Layer for Ngnn {
    const NAME: &'static str = "ngnn";

    fn input(&self) -> usize {
        self.convolution.input()
    }

    fn apply<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var, after: After) -> Var {
        let y = self.convolution.apply(tape, block, x, After { dropout: 0.0, ..after });
        let Some((weight, bias)) = self.inner else { return y };
        let y = tape.linear(y, weight, Some(bias), after.activation);
        after.drop(tape, block, y)
    }

    fn stages(stack: &Stack<Self>, sparse: bool) -> Option<Box<dyn Stages + '_>> {
        let mixes = stack.layers.iter().any(|layer| layer.convolution.mixes_columns());
        (!mixes).then(|| Box::new(StackStages { stack, sparse }) as _)
    }
}

impl StagedLayer for Ngnn {
    fn dims(&self) -> (usize, usize) {
        self.convolution.dims()
    }

    fn send(&self, tape: &mut Tape<'_>, x: Var, narrow: bool) -> Outgoing {
        self.convolution.send(tape, x, narrow)
    }

    fn pass(&self) -> Pass {
        self.convolution.pass()
    }

    fn receive(&self, tape: &mut Tape<'_>, rows: Incoming, narrow: bool, act: Activation) -> Var {
        let y = self.convolution.receive(tape, rows, narrow, act);
        let Some((weight, bias)) = self.inner else { return y };
        // On blocks the convolution draws a key of its own, and later masks follow from the number
        // of keys drawn before them.
        tape.skip_draws(1);
        let mapped = tape.linear(y, weight, Some(bias), act);
        tape.release(y);
        mapped
    }
}
