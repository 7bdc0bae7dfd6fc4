//! Propagation with the attention of GAT (Veličković et al., ICLR 2018), computed once.

use gnarl_common::Result;
use gnarl_graph::blocks::Block;

use super::propagation::Propagation;
use crate::models::ModelConfig;
use crate::models::attention::Attention;
use crate::models::slices::Slices;
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
        let edges = self.attention.edges(block);
        let of_source = tape.slice_cols(scores, 0, self.heads);
        let own = tape.head_rows(scores, block.num_dst());
        let of_destination = tape.slice_cols(own, self.heads, self.heads);
        let all = self.attention.coefficients(tape, edges, of_source, of_destination);
        if self.heads == 1 { all } else { tape.mean_heads(all, self.heads) }
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
