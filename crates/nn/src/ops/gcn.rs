//! The symmetric normalisation of graph convolutional networks (Kipf and Welling, ICLR 2017,
//! eq. 2), on blocks that may hold a sample of the edges.

use std::sync::Arc;

use gnarl_sample::Block;
use rayon::prelude::*;

use super::pass::{Operator, Passing};
use crate::{Tape, Var};

impl<'b> Tape<'b> {
    /// `out[i] = x[i] / (dᵢ + 1) + Σ_j w_ij · x[j] / √((dᵢ + 1)(d_j + 1))`, with whole-graph
    /// in-degrees d and the block's edge weights (1 without). Where the block holds only a sample
    /// of a destination's edges, their terms are multiplied by degree over sample size, which
    /// makes the sum an unbiased estimate. A destination whose edges are all in other parts (a HALO
    /// node whose list was not kept) stands for its neighbours itself: its own factor is 1.
    ///
    /// # Panics
    /// If `x` has not one row a source.
    pub fn gcn_norm(&mut self, block: &'b Block, x: Var) -> Var {
        self.pass(&Arc::new(Passing::new(Operator::Gcn, block)), x)
    }
}

/// The factors of a block's edges, as one for each end: they are read more often than they would fit
/// into a cache if there were one for each edge.
pub(super) struct GcnNorm {
    /// The factor of each destination's own row.
    pub own: Vec<f32>,
    /// `1 / √(d_j + 1)` of each source.
    pub from: Vec<f32>,
    /// The same of each destination, times degree over sample size.
    pub to: Vec<f32>,
}

impl GcnNorm {
    pub fn of(block: &Block) -> Self {
        let degrees = block.degrees();
        let from: Vec<f32> = degrees.par_iter().map(|&d| 1.0 / (d as f32 + 1.0).sqrt()).collect();
        let own = |d: usize| match block.sources(d).len() {
            0 => 1.0,
            _ => 1.0 / (degrees[d] as f32 + 1.0),
        };
        let to = |d: usize| degrees[d] as f32 / block.sources(d).len().max(1) as f32 * from[d];
        let destinations = (0..block.num_dst()).into_par_iter();
        let own = destinations.clone().map(own).collect();
        Self { own, to: destinations.map(to).collect(), from }
    }
}
