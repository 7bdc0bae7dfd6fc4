//! GAT (Veličković et al., ICLR 2018).

use gnarl_graph::error::{Error, Result};
use gnarl_sample::Block;

use super::{
    Model, ModelConfig, PRODUCT_SPEEDUP, activation_of, check_input, drop_input, output_dropout,
};
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

#[derive(Clone, Copy)]
struct Layer {
    weight: ParamId,
    source: ParamId,
    destination: ParamId,
    bias: ParamId,
    heads: usize,
    /// Width of one head.
    width: usize,
}

/// Multi-head attention over each destination's neighbourhood, itself included (eq. 1–6): heads
/// side by side in hidden layers, their mean in the last; dropout on layer inputs and on attention
/// coefficients, ELU between layers. Edge weights play no part: the softmax normalises.
pub(super) struct Gat {
    config: ModelConfig,
    layers: Vec<Layer>,
}

impl Gat {
    pub(super) fn new(config: &ModelConfig, params: &mut ParamsBuilder) -> Result<Self> {
        if config.layers > 1 && !config.hidden.is_multiple_of(config.heads) {
            return Err(Error::usage(format!(
                "model.hidden is {}, which {} heads do not divide",
                config.hidden, config.heads
            ))
            .hint("model.hidden is the width of all heads together: a multiple of model.heads"));
        }
        let layers = (0..config.layers)
            .map(|i| {
                let (input, output) = config.dims(i);
                let last = i + 1 == config.layers;
                let heads = if last { config.out_heads } else { config.heads };
                let width = if last { output } else { output / heads };
                let mut add = |part: &str, rows, cols, init| {
                    params.add(format!("layer{i}.{part}"), rows, cols, init)
                };
                Layer {
                    weight: add("weight", input, heads * width, Init::XavierUniform),
                    source: add("attn_src", heads, width, Init::XavierUniform),
                    destination: add("attn_dst", heads, width, Init::XavierUniform),
                    bias: add("bias", 1, output, Init::Zeros),
                    heads,
                    width,
                }
            })
            .collect();
        Ok(Self { config: config.clone(), layers })
    }

    /// Attention with every source projected first: for sparse input, and for blocks with few more
    /// sources than destinations.
    fn project_first<'b>(
        &self,
        tape: &mut Tape<'b>,
        block: &'b Block,
        x: Var,
        layer: Layer,
    ) -> Var {
        let z = tape.linear(x, layer.weight, None, Activation::None);
        let of_source = tape.head_scores(z, layer.source);
        let own = tape.head_rows(z, block.num_dst());
        let of_destination = tape.head_scores(own, layer.destination);
        let scores = tape.sddmm_add(block, of_source, of_destination);
        let slope = Activation::LeakyRelu(self.config.negative_slope);
        let scores = tape.activation(scores, slope);
        let attention = tape.edge_softmax(block, scores);
        let attention = tape.edge_dropout(block, attention, self.config.attention_dropout);
        tape.spmm_weighted(block, z, attention)
    }
}

/// Whether projecting all sources is less work than projecting a sum of input rows for every
/// destination and head; the counterpart of [`super::transform_first`].
fn projects_first(tape: &Tape<'_>, block: &Block, x: Var, layer: Layer) -> bool {
    let input = tape.shape(x).1;
    let extra_rows = block.num_src() - block.num_dst();
    let saved = layer.heads * input.saturating_sub(layer.width);
    tape.is_sparse(x)
        || extra_rows * input * layer.heads * layer.width
            <= saved * block.num_edges() * PRODUCT_SPEEDUP
}

impl Model for Gat {
    fn name(&self) -> &str {
        "gat"
    }

    fn num_layers(&self) -> usize {
        self.layers.len()
    }

    fn layer<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        block: &'b Block,
        x: Var,
    ) -> Result<Var> {
        let config = &self.config;
        let layer = self.layers[index];
        check_input("gat", tape, index, block, x, config.dims(index).0)?;
        let block = if config.self_loops { block.with_self_loops() } else { block };
        let x = drop_input(config, tape, index, block, x, config.dropout);
        let act = activation_of(config, index, Activation::Elu);
        // The mean over heads comes before bias and activation.
        let mean = index + 1 == self.layers.len() && layer.heads > 1;
        let y = if projects_first(tape, block, x, layer) {
            let joined = self.project_first(tape, block, x, layer);
            finish(tape, joined, layer, mean, act)
        } else {
            let attention = crate::Gat {
                weight: layer.weight,
                source: layer.source,
                destination: layer.destination,
                bias: (!mean).then_some(layer.bias),
                slope: config.negative_slope,
                dropout: config.attention_dropout,
            };
            let inner = if mean { Activation::None } else { act };
            let joined = tape.gat(block, x, attention, inner);
            if mean { finish(tape, joined, layer, mean, act) } else { joined }
        };
        Ok(tape.dropout(y, output_dropout(config, index), block.ids()))
    }
}

/// Heads side by side (or their mean), plus bias, through the activation.
fn finish(tape: &mut Tape<'_>, joined: Var, layer: Layer, mean: bool, act: Activation) -> Var {
    let y = if mean { tape.mean_heads(joined, layer.heads) } else { joined };
    let bias = tape.param(layer.bias);
    let y = tape.add_row(y, bias);
    tape.activation(y, act)
}
