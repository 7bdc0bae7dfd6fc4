//! The symmetric normalization of graph convolutional networks (Kipf and Welling, ICLR 2017,
//! eq. 2), on blocks that may hold a sample of the edges.

use std::sync::Arc;

use gnarl_graph::blocks::Block;

use super::pass::{Operator, Passing};
use crate::{Tape, Var};

impl<'b> Tape<'b> {
    /// `out[i] = x[i] / (dᵢ + 1) + Σ_j w_ij · x[j] / √((dᵢ + 1)(d_j + 1))`, with whole-graph
    /// in-degrees d and the block's edge weights (1 without). Where the block holds only a sample
    /// of a destination's edges, their terms are multiplied by degree over sample size, which
    /// makes the sum an unbiased estimate. A destination whose edges are all in other parts (a HALO
    /// node whose list was not kept) stands for its neighbors itself: its own factor is 1.
    ///
    /// # Panics
    /// If `x` has not one row a source.
    pub fn gcn_norm(&mut self, block: &'b Block, x: Var) -> Var {
        self.pass(&Arc::new(Passing::new(Operator::Gcn, block)), x)
    }
}
