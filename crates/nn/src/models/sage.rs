//! GraphSAGE (Hamilton et al., NeurIPS 2017), and the convolution NGNN shares with it.

use std::sync::Arc;

use gnarl_graph::blocks::Block;

use super::relation_layer::{Aggregation, RelationLayer};
use super::stack::{After, Layer, Stack, StackStages, StagedLayer};
use super::stages::{Incoming, Outgoing, Pass, Stages};
use super::{Aggregator, ModelConfig, transform_first};
use crate::ops::pass::{Operator, Passing};
use crate::{Activation, Init, ParamId, ParamsBuilder, Reduce, Tape, Var};

/// The transformation of neighbors before `neigh` maps them.
enum Gather {
    Mean,
    MaxPool { weight: ParamId, bias: ParamId },
    Lstm { input: ParamId, recurrent: ParamId, bias: ParamId },
}

/// `h' = σ(h W_self + AGG(h_u) W_neigh + b)`, Alg. 1 line 5 with the concatenation written as two
/// products, without the normalization of line 7 (as DGL's `SAGEConv`). The LSTM's state and the
/// pooled rows are as wide as the input.
pub(super) struct Convolution {
    own: ParamId,
    neighbors: ParamId,
    /// The two weights above joined, for the fused layer.
    both: ParamId,
    bias: ParamId,
    gather: Gather,
    input: usize,
    output: usize,
}

impl Convolution {
    fn new(
        aggregator: Aggregator,
        layer: usize,
        (input, output): (usize, usize),
        params: &mut ParamsBuilder,
    ) -> Self {
        let mut add = |part: &str, rows, cols, init| {
            params.add(format!("layer{layer}.{part}"), rows, cols, init)
        };
        let xavier = Init::XavierUniform;
        let gather = match aggregator {
            Aggregator::Mean => Gather::Mean,
            Aggregator::MaxPool => Gather::MaxPool {
                weight: add("pool.weight", input, input, xavier),
                bias: add("pool.bias", 1, input, Init::Zeros),
            },
            Aggregator::Lstm => Gather::Lstm {
                input: add("lstm.input", input, 4 * input, xavier),
                recurrent: add("lstm.recurrent", input, 4 * input, xavier),
                bias: add("lstm.bias", 1, 4 * input, Init::Zeros),
            },
        };
        let own = add("self.weight", input, output, xavier);
        let neighbors = add("neigh.weight", input, output, xavier);
        let bias = add("bias", 1, output, Init::Zeros);
        let both = params.join(own, neighbors);
        Self { own, neighbors, both, bias, gather, input, output }
    }

    /// Mapped messages from the input of their senders.
    fn message(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        match self.gather {
            Gather::MaxPool { weight, bias } => {
                tape.linear(x, weight, Some(bias), Activation::Relu)
            }
            _ => tape.linear(x, self.neighbors, None, Activation::None),
        }
    }

    /// The values that nodes keep while messages pass, from their input.
    fn keep(&self, tape: &mut Tape<'_>, x: Var, narrow: bool) -> Var {
        match narrow && self.pass() != Pass::Max {
            true => tape.linear(x, self.own, Some(self.bias), Activation::None),
            false => x,
        }
    }

    /// Returns whether aggregation mixes columns, so that no slice of them can be aggregated alone.
    pub(super) fn mixes_columns(&self) -> bool {
        matches!(self.gather, Gather::Lstm { .. })
    }
}

impl Layer for Convolution {
    const NAME: &'static str = "sage";

    fn input(&self) -> usize {
        self.input
    }

    fn apply<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var, after: After) -> Var {
        let map_first = transform_first(tape, block, x, self.input, self.output);
        let mean =
            |tape: &mut Tape<'b>, x| tape.pass(&Arc::new(Passing::new(Operator::Mean, block)), x);
        let neighbors = match self.gather {
            Gather::Mean if map_first => {
                let mapped = tape.linear(x, self.neighbors, None, Activation::None);
                mean(tape, mapped)
            }
            Gather::Mean if block.weights().is_none() => {
                let both = (self.both, Some(self.bias));
                return tape.sage(block, x, both, after.activation, after.dropout);
            }
            Gather::Mean => {
                let mean = mean(tape, x);
                tape.linear(mean, self.neighbors, None, Activation::None)
            }
            Gather::MaxPool { weight, bias } => {
                let pooled = tape.linear(x, weight, Some(bias), Activation::Relu);
                let largest = tape.spmm(block, pooled, Reduce::Max, None);
                tape.linear(largest, self.neighbors, None, Activation::None)
            }
            Gather::Lstm { input, recurrent, bias } => {
                let read = tape.linear(x, input, Some(bias), Activation::None);
                let state = tape.lstm_neighbors(block, read, recurrent);
                tape.linear(state, self.neighbors, None, Activation::None)
            }
        };
        let own = tape.head_rows(x, block.num_dst());
        let own = tape.linear(own, self.own, Some(self.bias), Activation::None);
        let sum = tape.add(own, neighbors);
        let y = tape.activation(sum, after.activation);
        after.drop(tape, block, y)
    }

    fn stages(stack: &Stack<Self>, sparse: bool) -> Option<Box<dyn Stages + '_>> {
        let mixes = stack.layers.iter().any(Self::mixes_columns);
        (!mixes).then(|| Box::new(StackStages { stack, sparse }) as _)
    }
}

impl StagedLayer for Convolution {
    fn dims(&self) -> (usize, usize) {
        (self.input, self.output)
    }

    /// Features that are mapped first keep their mapped self part: neither is wider than the output
    /// then.
    fn send(&self, tape: &mut Tape<'_>, x: Var, narrow: bool) -> Outgoing {
        let maps = narrow || self.pass() == Pass::Max;
        let sent = if maps { self.message(tape, x) } else { x };
        Outgoing { sent, kept: Some(self.keep(tape, x, narrow)) }
    }

    fn pass(&self) -> Pass {
        match self.gather {
            Gather::MaxPool { .. } => Pass::Max,
            _ => Pass::once(Operator::Mean),
        }
    }

    fn receive(&self, tape: &mut Tape<'_>, rows: Incoming, narrow: bool, act: Activation) -> Var {
        let kept = rows.kept.unwrap_or(rows.passed);
        let sum = if narrow && self.pass() != Pass::Max {
            tape.add(kept, rows.passed)
        } else {
            let own = tape.linear(kept, self.own, Some(self.bias), Activation::None);
            tape.add_linear_last(own, rows.passed, self.neighbors)
        };
        tape.activation_last(sum, act)
    }
}

impl RelationLayer for Stack<Convolution> {
    fn aggregation(&self) -> Option<Aggregation<'_>> {
        match self.layers[0].gather {
            Gather::Mean => Some(Aggregation::Reduce(Reduce::Mean)),
            Gather::MaxPool { .. } => Some(Aggregation::Reduce(Reduce::Max)),
            Gather::Lstm { .. } => None,
        }
    }

    fn widths(&self) -> (Option<usize>, usize) {
        let layer = &self.layers[0];
        match layer.gather {
            Gather::MaxPool { .. } => (None, layer.input),
            _ => (Some(layer.input), layer.output),
        }
    }

    fn send(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        self.layers[0].message(tape, x)
    }

    fn receive(&self, tape: &mut Tape<'_>, x: Var, aggregate: Var, mapped: bool) -> Var {
        let layer = &self.layers[0];
        let kept = Some(layer.keep(tape, x, mapped));
        layer.receive(tape, Incoming { passed: aggregate, kept }, mapped, Activation::None)
    }
}

pub(super) fn build(config: &ModelConfig, params: &mut ParamsBuilder) -> Stack<Convolution> {
    Stack::new(config, convolutions(config, params))
}

/// One convolution a layer.
pub(super) fn convolutions(config: &ModelConfig, params: &mut ParamsBuilder) -> Vec<Convolution> {
    let layer = |i| Convolution::new(config.aggregator, i, config.dims(i), params);
    (0..config.layers).map(layer).collect()
}
