//! GraphSAGE (Hamilton et al., NeurIPS 2017), and the convolution NGNN shares with it.

use gnarl_graph::Result;
use gnarl_sample::Block;

use super::slices::Slices;
use super::stack::{After, Layer, Stack};
use super::{Aggregator, ModelConfig, transform_first};
use crate::{Activation, Init, ParamId, ParamsBuilder, Reduce, Tape, Var};

/// What a convolution does to neighbours before `neigh` maps them.
enum Gather {
    Mean,
    MaxPool { weight: ParamId, bias: ParamId },
    Lstm { input: ParamId, recurrent: ParamId, bias: ParamId },
}

/// `h' = σ(h W_self + AGG(h_u) W_neigh + b)`, Alg. 1 line 5 with the concatenation written as two
/// products, without the normalisation of line 7 (as DGL's `SAGEConv`). The LSTM's state and the
/// pooled rows are as wide as the input.
pub(super) struct Convolution {
    own: ParamId,
    neighbours: ParamId,
    /// The two above as one, for the fused layer.
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
        let neighbours = add("neigh.weight", input, output, xavier);
        let bias = add("bias", 1, output, Init::Zeros);
        let both = params.join(own, neighbours);
        Self { own, neighbours, both, bias, gather, input, output }
    }
}

impl Layer for Convolution {
    const NAME: &'static str = "sage";

    fn input(&self) -> usize {
        self.input
    }

    fn apply<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var, after: After) -> Var {
        let map_first = transform_first(tape, block, x, self.input, self.output);
        let neighbours = match self.gather {
            Gather::Mean if map_first => {
                let mapped = tape.linear(x, self.neighbours, None, Activation::None);
                neighbour_mean(tape, block, mapped)
            }
            Gather::Mean if block.weights().is_none() => {
                let both = (self.both, Some(self.bias));
                return tape.sage(block, x, both, after.activation, after.dropout);
            }
            Gather::Mean => {
                let mean = neighbour_mean(tape, block, x);
                tape.linear(mean, self.neighbours, None, Activation::None)
            }
            Gather::MaxPool { weight, bias } => {
                let pooled = tape.linear(x, weight, Some(bias), Activation::Relu);
                let largest = tape.spmm(block, pooled, Reduce::Max, None);
                tape.linear(largest, self.neighbours, None, Activation::None)
            }
            Gather::Lstm { input, recurrent, bias } => {
                let read = tape.linear(x, input, Some(bias), Activation::None);
                let state = tape.lstm_neighbours(block, read, recurrent);
                tape.linear(state, self.neighbours, None, Activation::None)
            }
        };
        let own = tape.head_rows(x, block.num_dst());
        let own = tape.linear(own, self.own, Some(self.bias), Activation::None);
        let sum = tape.add(own, neighbours);
        let y = tape.activation(sum, after.activation);
        after.drop(tape, block, y)
    }

    fn apply_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &Slices<'b>,
        x: Var,
        after: After,
    ) -> Result<Option<Var>> {
        let map = |tape: &mut Tape<'b>, x| tape.linear(x, self.neighbours, None, Activation::None);
        let neighbours = match self.gather {
            Gather::Mean if slices.maps_first(tape, x, (self.input, self.output)) => {
                let mapped = map(tape, x);
                slices.pass(tape, mapped, neighbour_mean)?
            }
            Gather::Mean => {
                let mean = slices.pass(tape, x, neighbour_mean)?;
                map(tape, mean)
            }
            Gather::MaxPool { weight, bias } => {
                let pooled = tape.linear(x, weight, Some(bias), Activation::Relu);
                let pass = |tape: &mut Tape<'b>, block, x| tape.spmm(block, x, Reduce::Max, None);
                let largest = slices.pass(tape, pooled, pass)?;
                map(tape, largest)
            }
            // An LSTM mixes columns.
            Gather::Lstm { .. } => return Ok(None),
        };
        let own = tape.linear(x, self.own, Some(self.bias), Activation::None);
        let sum = tape.add(own, neighbours);
        let y = tape.activation(sum, after.activation);
        Ok(Some(tape.dropout(y, after.dropout, slices.ids)))
    }
}

/// The mean over each destination's edges, by weight where the block has weights: with the
/// weights of an importance sampler this is the ratio estimate of the mean over all neighbours.
fn neighbour_mean<'b>(tape: &mut Tape<'b>, block: &'b Block, x: Var) -> Var {
    let Some(weights) = block.weights() else {
        return tape.spmm(block, x, Reduce::Mean, None);
    };
    let mut shares = weights.to_vec();
    for d in 0..block.num_dst() {
        let own = &mut shares[block.indptr()[d] as usize..block.indptr()[d + 1] as usize];
        let total: f32 = own.iter().sum();
        let scale = if total > 0.0 { 1.0 / total } else { 0.0 };
        own.iter_mut().for_each(|w| *w *= scale);
    }
    tape.spmm(block, x, Reduce::Sum, Some(shares.into()))
}

pub(super) fn build(config: &ModelConfig, params: &mut ParamsBuilder) -> Stack<Convolution> {
    Stack::new(config, convolutions(config, params))
}

/// One convolution a layer.
pub(super) fn convolutions(config: &ModelConfig, params: &mut ParamsBuilder) -> Vec<Convolution> {
    let layer = |i| Convolution::new(config.aggregator, i, config.dims(i), params);
    (0..config.layers).map(layer).collect()
}
