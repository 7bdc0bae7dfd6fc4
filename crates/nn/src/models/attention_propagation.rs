//! Propagation weighted by attention that is computed once (NeutronTP, section 4.1.1).

use gnarl_graph::blocks::Block;

use super::attention::Attention;
use super::teleport::mix;
use crate::{Tape, Var};

/// All propagations of rows, whose scores as sources and then as destinations follow them, one of both for each head.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionPropagation {
    /// Number of heads.
    pub heads: usize,
    /// Number of propagations.
    pub times: usize,
    /// APPNP's α.
    pub teleport: f32,
    pub(super) attention: Attention,
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
        let weights = self.attention.mean_weights(tape, block, scores, self.heads);
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
