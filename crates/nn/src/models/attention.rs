//! Attention coefficients, shared by all forms of GAT.

use gnarl_common::{Error, Result};
use gnarl_graph::blocks::Block;

use super::ModelConfig;
use crate::{Activation, EdgeAttention, ParamId, Tape, Var};

/// The heads of a layer: side by side in hidden layers, their mean in the last.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub count: usize,
    /// Width of one head.
    pub width: usize,
    /// True if the mean over heads is taken, before bias and activation.
    pub mean: bool,
}

impl Heads {
    /// Rejects hidden layers that heads do not divide.
    pub fn check(config: &ModelConfig) -> Result<()> {
        if config.layers > 1 && !config.hidden.is_multiple_of(config.heads) {
            return Err(Error::usage(format!(
                "invalid model.hidden '{}': expected a multiple of model.heads = {}",
                config.hidden, config.heads
            ))
            .hint("model.hidden is the width of all heads together"));
        }
        Ok(())
    }

    /// Those of layer `i`.
    pub fn of(config: &ModelConfig, i: usize) -> Self {
        let (_, output) = config.dims(i);
        if i + 1 == config.layers {
            return Self { count: config.out_heads, width: output, mean: config.out_heads > 1 };
        }
        Self { count: config.heads, width: output / config.heads, mean: false }
    }

    /// Width of all of them.
    pub fn cols(self) -> usize {
        self.count * self.width
    }

    /// Heads side by side (or their mean), plus bias, through the activation. `joined` is released.
    pub fn finish(
        self,
        tape: &mut Tape<'_>,
        joined: Var,
        bias: ParamId,
        activation: Activation,
    ) -> Var {
        let y = if self.mean {
            let mean = tape.mean_heads(joined, self.count);
            tape.release(joined);
            mean
        } else {
            joined
        };
        let bias = tape.param(bias);
        let y = tape.add_row_last(y, bias);
        tape.activation_last(y, activation)
    }
}

/// Coefficients of edges (Veličković et al., ICLR 2018, eq. 3), with dropout.
#[derive(Debug, Clone, Copy, PartialEq)]
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

    /// The constants of attention by the endpoints alone.
    pub(super) fn constants(&self) -> EdgeAttention {
        EdgeAttention { slope: self.negative_slope, dropout: self.dropout }
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

    /// The mean over heads of the coefficients of [`Attention::edges`], from the scores of the sources of `block`: those as
    /// sources, and then those as destinations.
    pub(super) fn mean_weights<'b>(
        &self,
        tape: &mut Tape<'b>,
        block: &'b Block,
        scores: Var,
        heads: usize,
    ) -> Var {
        let edges = self.edges(block);
        let of_source = tape.slice_cols(scores, 0, heads);
        let own = tape.head_rows(scores, block.num_dst());
        let of_destination = tape.slice_cols(own, heads, heads);
        let all = self.coefficients(tape, edges, of_source, of_destination);
        if heads == 1 { all } else { tape.mean_heads(all, heads) }
    }

    /// The same from the scores of edges.
    pub(super) fn of_scores<'b>(&self, tape: &mut Tape<'b>, edges: &'b Block, scores: Var) -> Var {
        let scores = tape.activation(scores, Activation::LeakyRelu(self.negative_slope));
        let attention = tape.edge_softmax(edges, scores);
        tape.edge_dropout(edges, attention, self.dropout)
    }
}
