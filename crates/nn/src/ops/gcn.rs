//! The symmetric normalisation of graph convolutional networks (Kipf and Welling, ICLR 2017,
//! eq. 2), on blocks that may hold a sample of the edges.

use std::sync::Arc;

use gnarl_sample::Block;

use crate::kernel::gather::{Rows, gather_sum};
use crate::{Tape, Tensor, Var};

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
        self.gcn_norm_by(block, x, Arc::new(GcnNorm::of(block)))
    }

    /// [`Tape::gcn_norm`] with the block's factors.
    pub(crate) fn gcn_norm_by(&mut self, block: &'b Block, x: Var, norm: Arc<GcnNorm>) -> Var {
        let (rows, cols) = self.shape(x);
        assert_eq!(rows, block.num_src(), "gcn_norm: one row a source");
        let own = move |d: usize| own_weight(block, d);
        let mut y = Tensor::scratch(block.num_dst(), cols);
        let (csc, value) =
            ((block.indptr(), block.indices()), Rows::new(self.value(x).data(), cols));
        let itself = Some((value, block.num_dst(), &own as _));
        let weights = block.weights();
        with_weight(weights, |of| {
            let weight = |e: usize, d: usize| norm.at(block.indices()[e], d) * of(e);
            gather_sum(y.data_mut(), csc, value, weight, itself);
        });
        self.push(y, self.needs_grad(x), move |grads, grad| {
            let transpose = block.transpose();
            let mut to_x = Tensor::scratch(rows, cols);
            let (csr, dy) = ((&*transpose.indptr, &*transpose.dst), Rows::new(grad.data(), cols));
            let itself = Some((dy, block.num_dst(), &own as _));
            with_weight(weights, |of| {
                let weight = |t: usize, s: usize| {
                    norm.at(s as u32, transpose.dst[t] as usize) * of(transpose.edge[t] as usize)
                };
                gather_sum(to_x.data_mut(), csr, dy, weight, itself);
            });
            grads.add(x, to_x);
        })
    }
}

/// The factor of a destination's own row.
fn own_weight(block: &Block, d: usize) -> f32 {
    if block.sources(d).is_empty() { 1.0 } else { 1.0 / (block.degrees()[d] as f32 + 1.0) }
}

/// The factors of a block's edges, as one for each end: they are read more often than they would fit
/// into a cache if there were one for each edge.
pub(crate) struct GcnNorm {
    /// `1 / √(d_j + 1)` of each source.
    root: Vec<f32>,
    /// The same of each destination, times degree over sample size.
    scale: Vec<f32>,
}

impl GcnNorm {
    pub(crate) fn of(block: &Block) -> Self {
        let root: Vec<f32> =
            block.degrees().iter().map(|&degree| 1.0 / (degree as f32 + 1.0).sqrt()).collect();
        let scale = |d: usize| {
            let sample = block.sources(d).len().max(1) as f32;
            block.degrees()[d] as f32 / sample * root[d]
        };
        Self { scale: (0..block.num_dst()).map(scale).collect(), root }
    }

    #[inline(always)]
    fn at(&self, source: u32, destination: usize) -> f32 {
        self.scale[destination] * self.root[source as usize]
    }
}

/// Calls `f` with the weight of each edge, 1 if there are none.
#[inline(always)]
fn with_weight(weights: Option<&[f32]>, f: impl FnOnce(&(dyn Fn(usize) -> f32 + Sync))) {
    match weights {
        Some(weights) => f(&|e| weights[e]),
        None => f(&|_| 1.0),
    }
}
