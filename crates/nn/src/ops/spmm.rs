//! Aggregation of neighbors: `out[i]` over the sources of destination `i`.

use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::kernel::gather::gather_sum;
use crate::kernel::row_source::Rows;
use crate::kernel::spans::over_edges;
use crate::{Lists, Tape, Tensor, Var};

/// A reduction over neighbors. A destination without neighbors gets zeros.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduce {
    /// The sum, each neighbor times its edge's weight.
    #[default]
    Sum,
    /// The sum divided by the number of edges.
    Mean,
    /// The largest value of each column; edge weights multiply before.
    Max,
}

impl<'b> Tape<'b> {
    /// Combines the rows of `x` (one a source) over the edges of `block` into one row a
    /// destination. `weights` holds one value an edge.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn spmm(
        &mut self,
        block: &'b impl Lists,
        x: Var,
        reduce: Reduce,
        weights: Option<Arc<[f32]>>,
    ) -> Var {
        let (rows, cols) = self.shape(x);
        assert_eq!(rows, block.num_src(), "spmm: one row a source");
        assert!(weights.as_ref().is_none_or(|w| w.len() == block.num_edges()), "spmm: weights");
        if reduce == Reduce::Max {
            return self.spmm_max(block, x, weights);
        }
        let scale: Option<Vec<f32>> = (reduce == Reduce::Mean).then(|| inverse_degrees(block));
        let mut y = Tensor::scratch(block.num_dst(), cols);
        let csc = (block.indptr(), block.indices());
        let value = Rows::new(self.value(x).data(), cols);
        with_weights(weights.as_deref(), scale.as_deref(), |weight| {
            gather_sum(y.data_mut(), csc, value, weight, None);
        });
        self.push(y, self.needs_grad(x), move |grads, grad| {
            let transpose = block.transpose();
            let mut to_x = Tensor::scratch(rows, cols);
            let (csr, dy) = ((&*transpose.indptr, &*transpose.dst), Rows::new(grad.data(), cols));
            with_weights(weights.as_deref(), scale.as_deref(), |weight| {
                let swapped =
                    |t: usize, _| weight(transpose.edge[t] as usize, transpose.dst[t] as usize);
                gather_sum(to_x.data_mut(), csr, dy, swapped, None);
            });
            grads.add(x, to_x);
        })
    }

    fn spmm_max(&mut self, block: &'b impl Lists, x: Var, weights: Option<Arc<[f32]>>) -> Var {
        let (rows, cols) = self.shape(x);
        let value = self.value(x);
        let weight = |e: usize| weights.as_ref().map_or(1.0, |w| w[e]);
        let mut y = Tensor::zeros(block.num_dst(), cols);
        let span = over_edges("SpMM max", block.num_edges(), cols, 2.0);
        let mut winner = vec![u32::MAX; block.num_dst() * cols];
        if cols > 0 {
            let out = y.data_mut().par_chunks_mut(cols).zip(winner.par_chunks_mut(cols));
            out.enumerate().with_min_len(256).for_each(|(d, (best, winner))| {
                let first = block.indptr()[d];
                for (i, &s) in block.sources(d).iter().enumerate() {
                    let e = first + i as u32;
                    let (row, w) = (value.row(s as usize), weight(e as usize));
                    for ((b, k), v) in best.iter_mut().zip(winner.iter_mut()).zip(row) {
                        let candidate = w * v;
                        let wins = *k == u32::MAX || candidate > *b;
                        *b = if wins { candidate } else { *b };
                        *k = if wins { e } else { *k };
                    }
                }
            });
        }
        drop(span);
        self.push(y, self.needs_grad(x), move |grads, grad| {
            let _span = over_edges("SpMM max (gradient)", block.num_edges(), cols, 2.0);
            let transpose = block.transpose();
            let mut to_x = Tensor::zeros(rows, cols);
            let weight = |e: usize| weights.as_ref().map_or(1.0, |w| w[e]);
            if cols > 0 {
                let out = to_x.data_mut().par_chunks_mut(cols).enumerate().with_min_len(256);
                out.for_each(|(s, out)| {
                    for t in transpose.indptr[s] as usize..transpose.indptr[s + 1] as usize {
                        let (d, e) = (transpose.dst[t] as usize, transpose.edge[t]);
                        let winner = &winner[d * cols..(d + 1) * cols];
                        let w = weight(e as usize);
                        for ((o, g), &k) in out.iter_mut().zip(grad.row(d)).zip(winner) {
                            *o += if k == e { w * g } else { 0.0 };
                        }
                    }
                });
            }
            grads.add(x, to_x);
        })
    }
}

/// Calls `f` with the function of (edge, destination) that gives the edge's factor.
fn with_weights(
    weights: Option<&[f32]>,
    scale: Option<&[f32]>,
    f: impl FnOnce(&(dyn Fn(usize, usize) -> f32 + Sync)),
) {
    match (weights, scale) {
        (None, None) => f(&|_, _| 1.0),
        (None, Some(scale)) => f(&|_, d| scale[d]),
        (Some(weights), None) => f(&|e, _| weights[e]),
        (Some(weights), Some(scale)) => f(&|e, d| weights[e] * scale[d]),
    }
}

/// 1 / number of edges of each destination, 0 without edges.
pub(crate) fn inverse_degrees(block: &impl Lists) -> Vec<f32> {
    let degree = |w: &[u32]| (w[1] - w[0]) as f32;
    block.indptr().windows(2).map(|w| if w[0] == w[1] { 0.0 } else { 1.0 / degree(w) }).collect()
}
