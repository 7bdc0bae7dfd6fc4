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
        self.gcn_norm_by(block, x, edge_weights(block))
    }

    /// [`Tape::gcn_norm`] with the block's [`edge_weights`].
    pub(crate) fn gcn_norm_by(&mut self, block: &'b Block, x: Var, edges: Arc<[f32]>) -> Var {
        let (rows, cols) = self.shape(x);
        assert_eq!(rows, block.num_src(), "gcn_norm: one row a source");
        let own = move |d: usize| own_weight(block, d);
        let mut y = Tensor::scratch(block.num_dst(), cols);
        let (csc, value) =
            ((block.indptr(), block.indices()), Rows::new(self.value(x).data(), cols));
        let itself = Some((value, block.num_dst(), &own as _));
        gather_sum(y.data_mut(), csc, value, |e, _| edges[e], itself);
        self.push(y, self.needs_grad(x), move |grads, grad| {
            let transpose = block.transpose();
            let mut to_x = Tensor::scratch(rows, cols);
            let (csr, dy) = ((&*transpose.indptr, &*transpose.dst), Rows::new(grad.data(), cols));
            let itself = Some((dy, block.num_dst(), &own as _));
            let weight = |t: usize, _| edges[transpose.edge[t] as usize];
            gather_sum(to_x.data_mut(), csr, dy, weight, itself);
            grads.add(x, to_x);
        })
    }
}

/// The factor of a destination's own row.
fn own_weight(block: &Block, d: usize) -> f32 {
    if block.sources(d).is_empty() { 1.0 } else { 1.0 / (block.degrees()[d] as f32 + 1.0) }
}

/// Every edge's factor.
pub(crate) fn edge_weights(block: &Block) -> Arc<[f32]> {
    let root = |node: usize| 1.0 / (block.degrees()[node] as f32 + 1.0).sqrt();
    let mut factors = Vec::with_capacity(block.num_edges());
    for d in 0..block.num_dst() {
        let sources = block.sources(d);
        let scale = block.degrees()[d] as f32 / sources.len().max(1) as f32 * root(d);
        factors.extend(sources.iter().map(|&s| scale * root(s as usize)));
    }
    if let Some(weights) = block.weights() {
        factors.iter_mut().zip(weights).for_each(|(f, w)| *f *= w);
    }
    factors.into()
}
