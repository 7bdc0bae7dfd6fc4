//! Propagation with the attention of GAT (Veličković et al., ICLR 2018), computed once.

use gnarl_common::Result;
use gnarl_graph::blocks::Block;

use super::propagation::Propagation;
use crate::models::ModelConfig;
use crate::models::attention::Attention;
use crate::models::attention_propagation::AttentionPropagation;
use crate::models::slices::Slices;
use crate::models::stages::Pass;
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
}

impl Propagation for Gat {
    const NAME: &'static str = "decoupled gat";
    const ACTIVATION: Activation = Activation::Elu;
    const READS_ROWS: bool = true;
    type Weights<'b> = Var;

    fn weigh<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, rows: Var) -> Var {
        let scores = tape.linear(rows, self.scores, None, Activation::None);
        self.attention.mean_weights(tape, block, scores, self.heads)
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
        Some(
            scores.map(|scores| {
                self.attention.mean_weights(tape, slices.block(0), scores, self.heads)
            }),
        )
    }

    fn pass<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, weights: &Var, x: Var) -> Var {
        tape.spmm_weighted(self.attention.edges(block), x, *weights)
    }
}
