//! Propagation with the attention of GAT (Veličković et al., ICLR 2018), computed once.

use gnarl_common::Result;
use gnarl_graph::blocks::Block;

use super::propagation::Propagation;
use crate::models::ModelConfig;
use crate::models::attention::Attention;
use crate::models::slices::Slices;
use crate::models::stages::{Pass, mix};
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

/// Each edge weighs the mean of its heads' coefficients (NeutronTP, section 4.1.1). The mean over
/// heads of weighted sums of the same rows is the sum weighted by that mean.
pub(super) struct Gat {
    /// Score vectors: a column per head for sources, then one per head for destinations.
    scores: ParamId,
    heads: usize,
    attention: Attention,
}

impl Gat {
    pub(super) fn new(config: &ModelConfig, params: &mut ParamsBuilder) -> Self {
        let heads = config.out_heads;
        let scores = params.add("attention", config.out_dim, 2 * heads, Init::XavierUniform);
        Self { scores, heads, attention: Attention::new(config) }
    }

    /// The weights of a block's edges, from the scores of its sources.
    fn weights<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, scores: Var) -> Var {
        weights(tape, block, scores, (self.heads, &self.attention))
    }
}

/// The weights of a block's edges, from the scores of its sources.
fn weights<'b>(
    tape: &mut Tape<'b>,
    block: &'b Block,
    scores: Var,
    (heads, attention): (usize, &Attention),
) -> Var {
    let edges = attention.edges(block);
    let of_source = tape.slice_cols(scores, 0, heads);
    let own = tape.head_rows(scores, block.num_dst());
    let of_destination = tape.slice_cols(own, heads, heads);
    let all = attention.coefficients(tape, edges, of_source, of_destination);
    if heads == 1 { all } else { tape.mean_heads(all, heads) }
}

/// All propagations of rows, whose scores as sources and then as destinations follow them, one of both for each head.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionPropagation {
    /// Number of heads.
    pub heads: usize,
    /// Number of propagations.
    pub times: usize,
    /// APPNP's α.
    pub teleport: f32,
    attention: Attention,
}

impl AttentionPropagation {
    /// True if nodes attend to themselves.
    pub fn self_loops(&self) -> bool {
        self.attention.self_loops()
    }

    /// Number of a row's scores.
    pub fn scores(&self) -> usize {
        2 * self.heads
    }

    /// Propagates the rows of all sources of `block`: some or all of their columns, and all scores.
    ///
    /// # Panics
    /// If there is not one row a source.
    pub fn apply<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, rows: Var) -> Var {
        let columns = tape.shape(rows).1 - self.scores();
        let scores = tape.slice_cols(rows, columns, self.scores());
        let weights = weights(tape, block, scores, (self.heads, &self.attention));
        let first = tape.slice_cols(rows, 0, columns);
        let edges = self.attention.edges(block);
        (0..self.times).fold(first, |x, _| {
            let passed = tape.spmm_weighted(edges, x, weights);
            if x != first {
                tape.release(x);
            }
            mix(tape, passed, first, self.teleport)
        })
    }
}

impl Propagation for Gat {
    const NAME: &'static str = "decoupled gat";
    const ACTIVATION: Activation = Activation::Elu;
    const READS_ROWS: bool = true;
    type Weights<'b> = Var;

    fn weigh<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, rows: Var) -> Var {
        let scores = tape.linear(rows, self.scores, None, Activation::None);
        self.weights(tape, block, scores)
    }

    fn with_scores(&self, times: usize, teleport: f32) -> Option<Pass> {
        let Self { heads, attention, .. } = *self;
        Some(Pass::Propagation(AttentionPropagation { heads, times, teleport, attention }))
    }

    fn scored(&self, tape: &mut Tape<'_>, rows: Var) -> Var {
        let scores = tape.linear(rows, self.scores, None, Activation::None);
        tape.concat_cols(&[rows, scores])
    }

    /// Ranks exchange scores of nodes, which are fewer than coefficients of edges.
    fn weigh_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &Slices<'b>,
        rows: Var,
    ) -> Option<Result<Var>> {
        let scores = tape.linear(rows, self.scores, None, Activation::None);
        let scores = tape.all_rows(slices.exchange, scores);
        Some(scores.map(|scores| self.weights(tape, slices.block(0), scores)))
    }

    fn pass<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, weights: &Var, x: Var) -> Var {
        tape.spmm_weighted(self.attention.edges(block), x, *weights)
    }
}
