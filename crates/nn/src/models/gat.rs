//! GAT (Veličković et al., ICLR 2018).

use gnarl_graph::error::{Error, Result};
use gnarl_sample::Block;

use super::stack::{After, Layer, Stack};
use super::{ModelConfig, PRODUCT_SPEEDUP};
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

/// Multi-head attention over each destination's neighbourhood, itself included (eq. 1–6): heads
/// side by side in hidden layers, their mean in the last; dropout on layer inputs and on attention
/// coefficients, ELU between layers. Edge weights play no part: the softmax normalises.
pub(super) struct Gat {
    weight: ParamId,
    source: ParamId,
    destination: ParamId,
    bias: ParamId,
    input: usize,
    heads: usize,
    /// Width of one head.
    width: usize,
    /// Whether the mean over heads is taken, before bias and activation.
    mean: bool,
    self_loops: bool,
    negative_slope: f32,
    attention_dropout: f32,
}

pub(super) fn build(config: &ModelConfig, params: &mut ParamsBuilder) -> Result<Stack<Gat>> {
    if config.layers > 1 && !config.hidden.is_multiple_of(config.heads) {
        return Err(Error::usage(format!(
            "model.hidden is {}, which {} heads do not divide",
            config.hidden, config.heads
        ))
        .hint("model.hidden is the width of all heads together: a multiple of model.heads"));
    }
    let layers = (0..config.layers).map(|i| Gat::new(config, i, params)).collect();
    Ok(Stack::new(config, layers))
}

impl Gat {
    fn new(config: &ModelConfig, i: usize, params: &mut ParamsBuilder) -> Self {
        let (input, output) = config.dims(i);
        let last = i + 1 == config.layers;
        let heads = if last { config.out_heads } else { config.heads };
        let width = if last { output } else { output / heads };
        let mut add =
            |part: &str, rows, cols, init| params.add(format!("layer{i}.{part}"), rows, cols, init);
        Self {
            weight: add("weight", input, heads * width, Init::XavierUniform),
            source: add("attn_src", heads, width, Init::XavierUniform),
            destination: add("attn_dst", heads, width, Init::XavierUniform),
            bias: add("bias", 1, output, Init::Zeros),
            input,
            heads,
            width,
            mean: last && heads > 1,
            self_loops: config.self_loops,
            negative_slope: config.negative_slope,
            attention_dropout: config.attention_dropout,
        }
    }

    /// Attention with every source projected first: for sparse input, and for blocks with few more
    /// sources than destinations.
    fn project_first<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var) -> Var {
        let z = tape.linear(x, self.weight, None, Activation::None);
        let of_source = tape.head_scores(z, self.source);
        let own = tape.head_rows(z, block.num_dst());
        let of_destination = tape.head_scores(own, self.destination);
        let scores = tape.sddmm_add(block, of_source, of_destination);
        let slope = Activation::LeakyRelu(self.negative_slope);
        let scores = tape.activation(scores, slope);
        let attention = tape.edge_softmax(block, scores);
        let attention = tape.edge_dropout(block, attention, self.attention_dropout);
        tape.spmm_weighted(block, z, attention)
    }

    /// Whether projecting all sources is less work than projecting a sum of input rows for every
    /// destination and head; the counterpart of [`super::transform_first`].
    fn projects_first(&self, tape: &Tape<'_>, block: &Block, x: Var) -> bool {
        let extra_rows = block.num_src() - block.num_dst();
        let saved = self.heads * self.input.saturating_sub(self.width);
        tape.is_sparse(x)
            || extra_rows * self.input * self.heads * self.width
                <= saved * block.num_edges() * PRODUCT_SPEEDUP
    }

    /// Heads side by side (or their mean), plus bias, through the activation.
    fn finish(&self, tape: &mut Tape<'_>, joined: Var, activation: Activation) -> Var {
        let y = if self.mean { tape.mean_heads(joined, self.heads) } else { joined };
        let bias = tape.param(self.bias);
        let y = tape.add_row(y, bias);
        tape.activation(y, activation)
    }
}

impl Layer for Gat {
    const NAME: &'static str = "gat";
    const ACTIVATION: Activation = Activation::Elu;
    const DROPS_INPUT: bool = true;

    fn input(&self) -> usize {
        self.input
    }

    fn apply<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var, after: After) -> Var {
        let looped = if self.self_loops { block.with_self_loops() } else { block };
        let y = if self.projects_first(tape, looped, x) {
            let joined = self.project_first(tape, looped, x);
            self.finish(tape, joined, after.activation)
        } else {
            let attention = crate::Gat {
                weight: self.weight,
                source: self.source,
                destination: self.destination,
                bias: (!self.mean).then_some(self.bias),
                slope: self.negative_slope,
                dropout: self.attention_dropout,
            };
            let inner = if self.mean { Activation::None } else { after.activation };
            let joined = tape.gat(looped, x, attention, inner);
            if self.mean { self.finish(tape, joined, after.activation) } else { joined }
        };
        after.drop(tape, looped, y)
    }
}
