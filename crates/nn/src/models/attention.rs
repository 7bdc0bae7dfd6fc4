//! Attention coefficients, shared by all forms of GAT.

use gnarl_graph::blocks::Block;

use super::ModelConfig;
use crate::{Activation, Tape, Var};

/// Coefficients of edges (Veličković et al., ICLR 2018, eq. 3), with dropout.
pub(super) struct Attention {
    self_loops: bool,
    negative_slope: f32,
    dropout: f32,
}

impl Attention {
    pub(super) fn new(config: &ModelConfig) -> Self {
        let ModelConfig { self_loops, negative_slope, attention_dropout: dropout, .. } = *config;
        Self { self_loops, negative_slope, dropout }
    }

    pub(super) fn self_loops(&self) -> bool {
        self.self_loops
    }

    pub(super) fn slope(&self) -> f32 {
        self.negative_slope
    }

    pub(super) fn dropout(&self) -> f32 {
        self.dropout
    }

    /// The edges attended to: with a self-loop per destination, unless disabled.
    pub(super) fn edges<'b>(&self, block: &'b Block) -> &'b Block {
        if self.self_loops { block.with_self_loops() } else { block }
    }

    /// The coefficient of each of [`Attention::edges`] and each head, from the scores of its
    /// endpoints.
    pub(super) fn coefficients<'b>(
        &self,
        tape: &mut Tape<'b>,
        edges: &'b Block,
        of_source: Var,
        of_destination: Var,
    ) -> Var {
        let scores = tape.sddmm_add(edges, of_source, of_destination);
        self.of_scores(tape, edges, scores)
    }

    /// The same from the scores of edges.
    pub(super) fn of_scores<'b>(&self, tape: &mut Tape<'b>, edges: &'b Block, scores: Var) -> Var {
        let scores = tape.activation(scores, Activation::LeakyRelu(self.negative_slope));
        let attention = tape.edge_softmax(edges, scores);
        tape.edge_dropout(edges, attention, self.dropout)
    }
}
