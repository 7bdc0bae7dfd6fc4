//! R-GAT (Busbridge et al., Relational Graph Attention Networks, 2019; additive attention).

use gnarl_common::error::{Error, Result};
use gnarl_graph::blocks::Schema;

use super::Source;
use super::slices::{HeteroSlices, WholeRelations};
use super::stack::{HeteroLayer, HeteroStack};
use crate::models::stack::After;
use crate::models::{ModelConfig, Softmax};
use crate::{Activation, Init, ParamId, ParamsBuilder, Reduce, RelBlock, Tape, Var};

/// Attention with a projection `W_r` and score vectors of each edge type (§2.2–2.4): heads side by
/// side in hidden layers, their mean in the last. A self-loop has a weight of its own, as in R-GCN.
pub(super) struct Rgat {
    pub(super) weight: ParamId,
    pub(super) source: ParamId,
    pub(super) destination: ParamId,
    own: ParamId,
    bias: ParamId,
    /// Columns of the input.
    pub(super) input: usize,
    pub(super) heads: usize,
    /// Columns of a head.
    pub(super) width: usize,
    /// True if the mean over heads is taken.
    mean: bool,
    pub(super) softmax: Softmax,
    pub(super) negative_slope: f32,
}

pub(super) fn build(
    config: &ModelConfig,
    schema: &Schema,
    sources: &[Source],
    params: &mut ParamsBuilder,
) -> Result<HeteroStack<Rgat>> {
    let relations = schema.edge_types().len();
    if config.layers > 1 && !config.hidden.is_multiple_of(config.heads) {
        return Err(heads_do_not_divide(config));
    }
    HeteroStack::new(config, (schema, sources), params, |i, params| {
        Ok(Rgat::new(config, relations, i, params))
    })
}

pub(super) fn heads_do_not_divide(config: &ModelConfig) -> Error {
    let (hidden, heads) = (config.hidden, config.heads);
    Error::usage(format!(
        "invalid model.hidden '{hidden}': expected a multiple of model.heads = {heads}"
    ))
    .hint("model.hidden is the width of all heads together")
}

impl Rgat {
    fn new(config: &ModelConfig, relations: usize, i: usize, params: &mut ParamsBuilder) -> Self {
        let (input, output) = config.dims(i);
        let last = i + 1 == config.layers;
        let heads = if last { config.out_heads } else { config.heads };
        let width = if last { output } else { output / heads };
        let glorot = |from: usize, to: usize| Init::Uniform((6.0 / (from + to) as f32).sqrt());
        let mut add =
            |part: &str, rows, cols, init| params.add(format!("layer{i}.{part}"), rows, cols, init);
        let all = heads * width;
        Self {
            weight: add("weight", relations * input, all, glorot(input, all)),
            source: add("attn_src", relations, all, glorot(heads, width)),
            destination: add("attn_dst", relations, all, glorot(heads, width)),
            own: add("self.weight", input, output, Init::XavierUniform),
            bias: add("bias", 1, output, Init::Zeros),
            input,
            heads,
            width,
            mean: last && heads > 1,
            softmax: config.softmax,
            negative_slope: config.negative_slope,
        }
    }

    /// Attention over edges in the order of groups, one column a head.
    fn attention<'b>(&self, tape: &mut Tape<'b>, block: &'b RelBlock, x: Var, weight: Var) -> Var {
        let (source, destination) = (tape.param(self.source), tape.param(self.destination));
        let source = tape.relation_score_weights(weight, source, self.heads);
        let destination = tape.relation_score_weights(weight, destination, self.heads);
        let of_edges = tape.relation_scores(block.groups(), block.spans(), x, source);
        let own = tape.head_rows(x, block.num_dst());
        let of_groups = tape.relation_scores(block.ends(), block.spans(), own, destination);
        let scores = tape.add_to_lists(block.groups(), of_edges, of_groups);
        let scores = tape.activation(scores, Activation::LeakyRelu(self.negative_slope));
        match self.softmax {
            Softmax::Within => tape.edge_softmax(block.groups(), scores),
            Softmax::Across => softmax_across(tape, block, scores),
        }
    }

    /// The output of nodes with the input `x` and the sum of their messages.
    fn finish(&self, tape: &mut Tape<'_>, x: Var, sum: Var, activation: Activation) -> Var {
        let sum = if self.mean { tape.mean_heads(sum, self.heads) } else { sum };
        let own = tape.linear(x, self.own, Some(self.bias), Activation::None);
        let y = tape.add(own, sum);
        tape.activation(y, activation)
    }
}

/// Softmax over the edges of all types of each destination; `scores` are in the order of groups.
pub(super) fn softmax_across<'b>(tape: &mut Tape<'b>, block: &'b RelBlock, scores: Var) -> Var {
    let scores = tape.gather_rows(scores, block.place());
    let attention = tape.edge_softmax(block.block(), scores);
    tape.gather_rows(attention, block.position())
}

impl HeteroLayer for Rgat {
    const NAME: &'static str = "rgat";

    fn apply<'b>(
        &self,
        tape: &mut Tape<'b>,
        block: &'b RelBlock,
        x: Var,
        after: After,
    ) -> Result<Var> {
        let weight = tape.param(self.weight);
        let attention = self.attention(tape, block, x, weight);
        // Sums before projections: W_r · Σ α x = Σ α · W_r x, with fewer groups than edges.
        let heard = tape.spmm_heads(block.groups(), x, attention);
        let messages = tape.span_linear_heads(heard, weight, block.spans(), self.heads);
        let sum = tape.spmm(block.destinations(), messages, Reduce::Sum, None);
        let own = tape.head_rows(x, block.num_dst());
        let y = self.finish(tape, own, sum, after.activation);
        Ok(after.drop(tape, block.block(), y))
    }

    fn apply_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
        after: After,
    ) -> Result<Var> {
        let sum = self.attended(tape, slices, x)?;
        let y = self.finish(tape, x, sum, after.activation);
        Ok(tape.dropout(y, after.dropout, slices.ids))
    }

    fn prepare(&self, graph: &WholeRelations) {
        Rgat::prepare(self, graph);
    }
}
