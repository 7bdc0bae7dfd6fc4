//! GAT (Veličković et al., ICLR 2018).

use gnarl_common::Result;
use gnarl_graph::blocks::Block;

use super::ModelConfig;
use super::attention::{Attention, Heads};
use super::edge_input::EdgeInput;
use super::head_slice::HeadSlice;
use super::relation_layer::{Aggregation, Attending, RelationLayer};
use super::slices::Slices;
use super::stack::{After, Layer, Stack, StackStages, StagedLayer};
use super::stages::{Incoming, Outgoing, Pass, Stages};
use super::transform::PRODUCT_SPEEDUP;
use crate::ops::list_attention;
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

/// Multi-head attention over each destination's neighborhood, itself included (eq. 1–6): heads
/// side by side in hidden layers, their mean in the last; dropout on layer inputs and on attention
/// coefficients, ELU between layers. Edge weights play no part: the softmax normalizes. With edge features the score of an
/// edge has a third term, `a_eᵀ W_e e`.
pub(super) struct Gat {
    weight: ParamId,
    source: ParamId,
    destination: ParamId,
    bias: ParamId,
    /// The map of edges' features, and their score vectors.
    edges: Option<(EdgeInput, ParamId)>,
    input: usize,
    heads: Heads,
    attention: Attention,
}

pub(super) fn build(config: &ModelConfig, params: &mut ParamsBuilder) -> Result<Stack<Gat>> {
    Heads::check(config)?;
    let layers = (0..config.layers).map(|i| Gat::new(config, i, params)).collect();
    Ok(Stack::new(config, layers))
}

impl Gat {
    fn new(config: &ModelConfig, i: usize, params: &mut ParamsBuilder) -> Self {
        let (input, output) = config.dims(i);
        let heads = Heads::of(config, i);
        let mut add =
            |part: &str, rows, cols, init| params.add(format!("layer{i}.{part}"), rows, cols, init);
        let weight = add("weight", input, heads.cols(), Init::XavierUniform);
        let source = add("attn_src", heads.count, heads.width, Init::XavierUniform);
        let destination = add("attn_dst", heads.count, heads.width, Init::XavierUniform);
        let bias = add("bias", 1, output, Init::Zeros);
        let edges = EdgeInput::new(config, i, heads.cols(), params).map(|edges| {
            let name = format!("layer{i}.attn_edge");
            (edges, params.add(name, heads.count, heads.width, Init::XavierUniform))
        });
        Self {
            weight,
            source,
            destination,
            bias,
            edges,
            input,
            heads,
            attention: Attention::new(config),
        }
    }

    /// Attention with every source projected first: for sparse input, and for blocks with few more
    /// sources than destinations.
    fn project_first<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var) -> Var {
        let z = tape.linear(x, self.weight, None, Activation::None);
        let of_source = tape.head_scores(z, self.source);
        let own = tape.head_rows(z, block.num_dst());
        let of_destination = tape.head_scores(own, self.destination);
        let Some((edges, scores)) = &self.edges else {
            let attention = self.attention.constants();
            return tape.attend(block, z, (of_source, of_destination), attention);
        };
        let of_edge = edges.of(tape, block);
        let of_edge = tape.head_scores(of_edge, *scores);
        let both = tape.sddmm_add(block, of_source, of_destination);
        let all = tape.add(both, of_edge);
        let attention = self.attention.of_scores(tape, block, all);
        tape.spmm_weighted(block, z, attention)
    }

    /// Returns whether projecting all sources is less work than projecting a sum of inputs for
    /// every destination and head; the counterpart of [`super::transform_first`].
    fn projects_first(&self, tape: &Tape<'_>, block: &Block, x: Var) -> bool {
        let extra_rows = block.num_src() - block.num_dst();
        let saved = self.heads.count * self.input.saturating_sub(self.heads.width);
        tape.is_sparse(x)
            || self.edges.is_some()
            || extra_rows * self.input * self.heads.cols()
                <= saved * block.num_edges() * PRODUCT_SPEEDUP
    }

    /// Heads side by side (or their mean), plus bias, through the activation. `joined` is released.
    fn finish(&self, tape: &mut Tape<'_>, joined: Var, activation: Activation) -> Var {
        self.heads.finish(tape, joined, self.bias, activation)
    }
}

impl Attending for Gat {
    fn heads(&self) -> usize {
        self.heads.count
    }

    fn attention(&self) -> &Attention {
        &self.attention
    }

    fn source_scores(&self, tape: &mut Tape<'_>, messages: Var) -> Var {
        tape.head_scores(messages, self.source)
    }

    fn destination_scores(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let to_scores = tape.score_weights(self.weight, self.destination);
        tape.matmul(x, to_scores)
    }
}

/// Every node is projected once, and sends its scores as a source and as a destination beside its projection.
impl StagedLayer for Gat {
    fn dims(&self) -> (usize, usize) {
        (self.input, self.heads.cols())
    }

    fn send(&self, tape: &mut Tape<'_>, x: Var, _: bool) -> Outgoing {
        let z = tape.linear(x, self.weight, None, Activation::None);
        let of_source = tape.head_scores(z, self.source);
        let of_destination = tape.head_scores(z, self.destination);
        Outgoing { sent: tape.concat_cols(&[z, of_source, of_destination]), kept: None }
    }

    fn pass(&self) -> Pass {
        Pass::Attention(list_attention::Attention {
            heads: self.heads.count,
            width: self.heads.width,
            slope: self.attention.slope(),
            self_loops: self.attention.self_loops(),
            dropout: self.attention.dropout(),
        })
    }

    fn receive(&self, tape: &mut Tape<'_>, rows: Incoming, _: bool, act: Activation) -> Var {
        self.finish(tape, rows.passed, act)
    }
}

/// Sources are projected before they are sent.
impl RelationLayer for Stack<Gat> {
    fn draws(&self) -> u64 {
        3
    }

    fn aggregation(&self) -> Option<Aggregation<'_>> {
        Some(Aggregation::Attention(&self.layers[0]))
    }

    fn widths(&self) -> (Option<usize>, usize) {
        (None, self.layers[0].heads.cols())
    }

    fn send(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        tape.linear(x, self.layers[0].weight, None, Activation::None)
    }

    fn receive(&self, tape: &mut Tape<'_>, _: Var, aggregate: Var, _: bool) -> Var {
        self.layers[0].finish(tape, aggregate, Activation::None)
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
        let looped = self.attention.edges(block);
        let y = if self.projects_first(tape, looped, x) {
            let joined = self.project_first(tape, looped, x);
            self.finish(tape, joined, after.activation)
        } else {
            let attention = crate::Gat {
                weight: self.weight,
                source: self.source,
                destination: self.destination,
                bias: (!self.heads.mean).then_some(self.bias),
                slope: self.attention.slope(),
                dropout: self.attention.dropout(),
            };
            let inner = if self.heads.mean { Activation::None } else { after.activation };
            let joined = tape.gat(looped, x, attention, inner);
            if self.heads.mean { self.finish(tape, joined, after.activation) } else { joined }
        };
        after.drop(tape, looped, y)
    }

    fn scored_stages(stack: &Stack<Self>, sparse: bool) -> Option<Box<dyn Stages + '_>> {
        let of_nodes = stack.layers.iter().all(|layer| layer.edges.is_none());
        of_nodes.then(|| Box::new(StackStages { stack, sparse }) as Box<dyn Stages>)
    }

    /// All ranks gather the scores of all nodes, and compute the coefficients of the heads of their slices.
    fn apply_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &Slices<'b>,
        index: usize,
        x: Var,
        after: After,
    ) -> Result<Option<Var>> {
        let block = self.attention.edges(slices.block(index));
        let z = tape.linear(x, self.weight, None, Activation::None);
        let scores = [tape.head_scores(z, self.source), tape.head_scores(z, self.destination)];
        let scores = tape.concat_cols(&scores);
        let scores = tape.all_rows(slices.exchange, scores)?;
        let of_source = tape.slice_cols(scores, 0, self.heads.count);
        let of_destination = tape.head_rows(scores, block.num_dst());
        let of_destination = tape.slice_cols(of_destination, self.heads.count, self.heads.count);
        let cols = self.heads.cols();
        let slice = tape.split(slices.exchange, z)?;
        let own = HeadSlice::new(slices.exchange.columns(cols), self.heads.width);
        let scores = (of_source, of_destination);
        let sums = own.attend(tape, block, slice, scores, self.attention.constants());
        let joined = tape.gather(slices.exchange, sums, cols)?;
        tape.release(sums);
        let y = self.finish(tape, joined, after.activation);
        Ok(Some(tape.dropout(y, after.dropout, slices.ids_after(index + 1))))
    }
}
