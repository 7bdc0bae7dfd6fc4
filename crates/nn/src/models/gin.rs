//! GIN (Xu et al., ICLR 2019).

use std::sync::Arc;

use gnarl_graph::Result;
use gnarl_sample::Block;

use super::slices::Slices;
use super::stack::{After, Layer, Stack};
use super::{ModelConfig, transform_first};
use crate::{Activation, Init, ParamId, ParamsBuilder, Reduce, Tape, Var};

/// `h' = MLP((1 + ε) h + Σ_u h_u)`, eq. 4.1, with learnable ε and a two-layer MLP as wide as the
/// layer's output. In a sampled block the sum stands for the whole neighbourhood: it is scaled by
/// whole-graph degree over sampled edges.
pub(super) struct Gin {
    eps: ParamId,
    inner: (ParamId, ParamId),
    outer: (ParamId, ParamId),
    /// Width of the input and of the MLP's hidden layer.
    dims: (usize, usize),
}

pub(super) fn build(config: &ModelConfig, params: &mut ParamsBuilder) -> Stack<Gin> {
    let mut linear = |name: String, input, output| {
        let weight = params.add(format!("{name}.weight"), input, output, Init::XavierUniform);
        (weight, params.add(format!("{name}.bias"), 1, output, Init::Zeros))
    };
    let mlp = |i| {
        let (input, output) = config.dims(i);
        let inner = linear(format!("layer{i}.mlp0"), input, config.hidden);
        (inner, linear(format!("layer{i}.mlp1"), config.hidden, output))
    };
    let mlps: Vec<_> = (0..config.layers).map(mlp).collect();
    let layer = |(i, (inner, outer))| {
        let eps = params.add(format!("layer{i}.eps"), 1, 1, Init::Zeros);
        Gin { eps, inner, outer, dims: (config.dims(i).0, config.hidden) }
    };
    Stack::new(config, mlps.into_iter().enumerate().map(layer).collect())
}

/// `(1 + ε) x` of the destinations plus the sum over neighbours.
fn sum_with_self<'b>(tape: &mut Tape<'b>, block: &'b Block, x: Var, eps: ParamId) -> Var {
    let neighbours = tape.spmm(block, x, Reduce::Sum, whole_sum_weights(block));
    let own = tape.head_rows(x, block.num_dst());
    add_own(tape, own, neighbours, eps)
}

fn add_own(tape: &mut Tape<'_>, own: Var, neighbours: Var, eps: ParamId) -> Var {
    let eps = tape.param(eps);
    let extra = tape.scale_by(own, eps);
    let own = tape.add(own, extra);
    tape.add(own, neighbours)
}

/// Edge weights that make a sum over sampled edges an unbiased estimate of the sum over all; they
/// multiply the block's own.
fn whole_sum_weights(block: &Block) -> Option<Arc<[f32]>> {
    let scale = |d: usize| block.degrees()[d] as f32 / block.sources(d).len() as f32;
    let complete =
        (0..block.num_dst()).all(|d| block.degrees()[d] as usize == block.sources(d).len());
    if complete {
        return block.weights().map(Arc::from);
    }
    let scales =
        (0..block.num_dst()).flat_map(|d| std::iter::repeat_n(scale(d), block.sources(d).len()));
    Some(match block.weights() {
        Some(weights) => scales.zip(weights).map(|(s, w)| s * w).collect(),
        None => scales.collect(),
    })
}

impl Layer for Gin {
    const NAME: &'static str = "gin";

    fn input(&self) -> usize {
        self.dims.0
    }

    fn apply<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var, after: After) -> Var {
        let (inner, outer) = (self.inner, self.outer);
        let middle = if transform_first(tape, block, x, self.dims.0, self.dims.1) {
            let x = tape.linear(x, inner.0, None, Activation::None);
            let mixed = sum_with_self(tape, block, x, self.eps);
            let bias = tape.param(inner.1);
            let mixed = tape.add_row(mixed, bias);
            tape.activation(mixed, Activation::Relu)
        } else {
            let mixed = sum_with_self(tape, block, x, self.eps);
            tape.linear(mixed, inner.0, Some(inner.1), Activation::Relu)
        };
        let y = tape.linear(middle, outer.0, Some(outer.1), after.activation);
        after.drop(tape, block, y)
    }

    fn apply_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &Slices<'b>,
        x: Var,
        after: After,
    ) -> Result<Option<Var>> {
        let (inner, outer) = (self.inner, self.outer);
        let pass = |tape: &mut Tape<'b>, block: &'b Block, x| {
            tape.spmm(block, x, Reduce::Sum, whole_sum_weights(block))
        };
        let middle = if slices.maps_first(tape, x, self.dims) {
            let x = tape.linear(x, inner.0, None, Activation::None);
            let neighbours = slices.pass(tape, x, pass)?;
            let mixed = add_own(tape, x, neighbours, self.eps);
            let bias = tape.param(inner.1);
            let mixed = tape.add_row(mixed, bias);
            tape.activation(mixed, Activation::Relu)
        } else {
            let neighbours = slices.pass(tape, x, pass)?;
            let mixed = add_own(tape, x, neighbours, self.eps);
            tape.linear(mixed, inner.0, Some(inner.1), Activation::Relu)
        };
        let y = tape.linear(middle, outer.0, Some(outer.1), after.activation);
        Ok(Some(tape.dropout(y, after.dropout, slices.ids)))
    }
}
