//! HGT (Hu et al., Heterogeneous Graph Transformer, WWW 2020).

use gnarl_common::error::Result;
use gnarl_graph::blocks::Schema;

use super::Source;
use super::rgat::{heads_do_not_divide, softmax_across};
use super::slices::{HeteroSlices, WholeRelations};
use super::stack::{HeteroLayer, HeteroStack};
use crate::models::ModelConfig;
use crate::models::stack::After;
use crate::{Activation, Init, Lists, ParamId, ParamsBuilder, Reduce, RelBlock, Span, Tape, Var};

/// Attention by products of keys and queries (eq. 3–5): keys, queries and values by node type; score
/// and message matrices and a prior by edge type; the result through a map by node type, added to
/// the node's own row. After the last layer a linear map gives the logits.
pub(super) struct Hgt {
    pub(super) query: ByType,
    pub(super) key: ByType,
    pub(super) value: ByType,
    output: ByType,
    /// `relations·width × hidden`, one block per head.
    pub(super) attention: ParamId,
    pub(super) message: ParamId,
    /// `relations × heads`.
    prior: ParamId,
    pub(super) heads: usize,
    /// Columns of a head.
    pub(super) width: usize,
    logits: Option<(ParamId, ParamId)>,
}

/// A linear map of each node type.
#[derive(Clone, Copy)]
pub(super) struct ByType {
    weight: ParamId,
    bias: ParamId,
}

impl ByType {
    fn new(name: &str, types: usize, hidden: usize, params: &mut ParamsBuilder) -> Self {
        let glorot = Init::Uniform((3.0 / hidden as f32).sqrt());
        let weight = params.add(format!("{name}.weight"), types * hidden, hidden, glorot);
        Self { weight, bias: params.add(format!("{name}.bias"), types, hidden, Init::Zeros) }
    }

    pub(super) fn apply<'b>(self, tape: &mut Tape<'b>, x: Var, spans: &'b [Span]) -> Var {
        let (weight, bias) = (tape.param(self.weight), tape.param(self.bias));
        let y = tape.span_linear(x, weight, spans);
        tape.span_bias(y, bias, spans)
    }
}

pub(super) fn build(
    config: &ModelConfig,
    schema: &Schema,
    sources: &[Source],
    params: &mut ParamsBuilder,
) -> Result<HeteroStack<Hgt>> {
    if !config.hidden.is_multiple_of(config.heads) {
        return Err(heads_do_not_divide(config));
    }
    HeteroStack::new(config, (schema, sources), params, |i, params| {
        Ok(params.scoped(&format!("layer{i}."), |params| Hgt::new(config, schema, i, params)))
    })
}

impl Hgt {
    fn new(config: &ModelConfig, schema: &Schema, i: usize, params: &mut ParamsBuilder) -> Self {
        let (types, relations) = (schema.node_types().len(), schema.edge_types().len());
        let (hidden, heads) = (config.hidden, config.heads);
        let width = hidden / heads;
        let glorot = Init::Uniform((3.0 / width as f32).sqrt());
        let last = i + 1 == config.layers;
        Self {
            query: ByType::new("query", types, hidden, params),
            key: ByType::new("key", types, hidden, params),
            value: ByType::new("value", types, hidden, params),
            output: ByType::new("output", types, hidden, params),
            attention: params.add("attention", relations * width, hidden, glorot),
            message: params.add("message", relations * width, hidden, glorot),
            prior: params.add("prior", relations, heads, Init::Ones),
            heads,
            width,
            logits: last.then(|| {
                let weight =
                    params.add("logits.weight", hidden, config.out_dim, Init::XavierUniform);
                (weight, params.add("logits.bias", 1, config.out_dim, Init::Zeros))
            }),
        }
    }

    /// Attention over edges in the order of groups, one column a head (eq. 3).
    fn attention<'b>(&self, tape: &mut Tape<'b>, block: &'b RelBlock, x: Var) -> Var {
        let own = tape.head_rows(x, block.num_dst());
        let query = self.query.apply(tape, own, block.own());
        // One query per edge type of a destination, not per edge.
        let query = tape.gather_rows(query, block.ends().indices());
        let by_type = tape.param(self.attention);
        let query = tape.span_linear_heads(query, by_type, block.spans(), self.heads);
        let key = self.key.apply(tape, x, block.sources());
        let scores = tape.sddmm_dot(block.groups(), key, query, self.heads);
        let prior = self.scaled_prior(tape);
        let prior = tape.gather_rows(prior, &block.edge_relation());
        let scores = tape.mul(scores, prior);
        softmax_across(tape, block, scores)
    }

    /// The factors of scores: priors over the square root of a head's width.
    pub(super) fn scaled_prior(&self, tape: &mut Tape<'_>) -> Var {
        let prior = tape.param(self.prior);
        tape.scale(prior, 1.0 / (self.width as f32).sqrt())
    }

    /// The output of nodes with the input `x`, the sum of their messages, and these types and
    /// dropout ids.
    fn finish<'b>(
        &self,
        tape: &mut Tape<'b>,
        (x, sum): (Var, Var),
        (spans, ids): (&'b [Span], &'b [u64]),
        after: After,
    ) -> Var {
        let sum = tape.activation(sum, Activation::Relu);
        let mapped = self.output.apply(tape, sum, spans);
        let mapped = tape.dropout(mapped, after.dropout, ids);
        let y = tape.add(mapped, x);
        match self.logits {
            Some((weight, bias)) => tape.linear(y, weight, Some(bias), Activation::None),
            None => y,
        }
    }
}

impl HeteroLayer for Hgt {
    const NAME: &'static str = "hgt";
    const PROJECTED: Activation = Activation::Relu;

    fn apply<'b>(
        &self,
        tape: &mut Tape<'b>,
        block: &'b RelBlock,
        x: Var,
        after: After,
    ) -> Result<Var> {
        let attention = self.attention(tape, block, x);
        let value = self.value.apply(tape, x, block.sources());
        let heard = tape.spmm_weighted(block.groups(), value, attention);
        let by_type = tape.param(self.message);
        let messages = tape.span_linear_heads(heard, by_type, block.spans(), self.heads);
        let sum = tape.spmm(block.destinations(), messages, Reduce::Sum, None);
        let own = tape.head_rows(x, block.num_dst());
        let of = (block.own(), block.block().ids());
        Ok(self.finish(tape, (own, sum), of, after))
    }

    fn apply_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
        after: After,
    ) -> Result<Var> {
        let sum = self.attended(tape, slices, x)?;
        Ok(self.finish(tape, (x, sum), (slices.graph.own(), slices.ids), after))
    }

    fn prepare(&self, graph: &WholeRelations) {
        graph.heard().groups.transpose();
        graph.heard().own.transpose();
    }
}
