//! Linear, column-wise message passing over the edges of a block.

use std::sync::Arc;

use gnarl_graph::blocks::Block;
use rayon::prelude::*;

use super::spmm::inverse_degrees;
use crate::kernel::gather::gather_rows;
use crate::kernel::row_source::{Own, Rows};
use crate::{Tape, Tensor, Var};

/// The weighting of neighbors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// The symmetric normalization of GCN, with self-loops.
    Gcn,
    /// The sum, each neighbor times its edge's weight. Where the block holds only a sample of a
    /// destination's edges, the sum is scaled to all of them.
    Sum,
    /// The mean, by weight where edges have weights: with the weights of an importance sampler this
    /// is the ratio estimate of the mean over all neighbors.
    Mean,
}

/// An [`Operator`] on a block: `y[d] = own[d] · x[d] + Σ_e to[d] · edge[e] · from[s] · x[s]` over the
/// edges `e` from `s` to `d`. A factor that is not there is 1, `own` 0.
#[derive(Debug)]
pub struct Passing<'b> {
    block: &'b Block,
    own: Option<Vec<f32>>,
    to: Option<Vec<f32>>,
    from: Option<Vec<f32>>,
    edge: Option<Vec<f32>>,
}

impl<'b> Passing<'b> {
    /// The factors of `operator` over `block`.
    pub fn new(operator: Operator, block: &'b Block) -> Self {
        let plain = Self { block, own: None, to: None, from: None, edge: None };
        match operator {
            Operator::Gcn => {
                let GcnNorm { own, to, from } = GcnNorm::of(block);
                let edge = block.weights().map(<[f32]>::to_vec);
                Self { own: Some(own), to: Some(to), from: Some(from), edge, ..plain }
            }
            Operator::Sum => Self { edge: whole_sum_weights(block), ..plain },
            Operator::Mean => match block.weights() {
                None => Self { to: Some(inverse_degrees(block)), ..plain },
                Some(weights) => Self { edge: Some(shares(block, weights)), ..plain },
            },
        }
    }

    /// The rows from `first` on of the result, as many as fit into `out`; `x` has a row of `cols` values
    /// for each source.
    ///
    /// # Panics
    /// If there are fewer rows.
    pub fn forward(&self, x: &[f32], cols: usize, first: usize, out: &mut [f32]) {
        let block = self.block;
        let (lists, x) = ((block.indptr(), block.indices()), Rows::new(x, cols));
        let own = |d: usize| self.own.as_ref().map_or(0.0, |own| own[d]);
        let own = self.own.as_ref().map(|_| (x, block.num_dst(), &own as _));
        match (&self.to, &self.from, &self.edge) {
            (None, None, None) => gather_rows(out, first, lists, x, |_, _| 1.0, own),
            (Some(to), None, None) => gather_rows(out, first, lists, x, |_, d| to[d], own),
            (Some(to), Some(from), None) => {
                let weight = |e: usize, d: usize| to[d] * from[lists.1[e] as usize];
                gather_rows(out, first, lists, x, weight, own);
            }
            _ => {
                let weight = |e, d| self.factor(lists.1[e] as usize, d, e);
                gather_rows(out, first, lists, x, weight, own);
            }
        }
    }

    /// The rows from `first` on of the gradient of `x`, as many as fit into `out`, where `grad` is that of
    /// the result.
    ///
    /// # Panics
    /// If there are fewer rows.
    pub fn backward(&self, grad: &[f32], cols: usize, first: usize, out: &mut [f32]) {
        let (block, grad) = (self.block, Rows::new(grad, cols));
        let own = |d: usize| self.own.as_ref().map_or(0.0, |own| own[d]);
        let own: Option<Own<'_>> = self.own.as_ref().map(|_| (grad, block.num_dst(), &own as _));
        if self.edge.is_some() {
            let turned = block.transpose();
            let lists = (&turned.indptr[..], &turned.dst[..]);
            let weight =
                |t: usize, s| self.factor(s, turned.dst[t] as usize, turned.edge[t] as usize);
            return gather_rows(out, first, lists, grad, weight, own);
        }
        let lists = block.out_lists();
        match (&self.to, &self.from) {
            (None, None) => gather_rows(out, first, lists, grad, |_, _| 1.0, own),
            (Some(to), Some(from)) => {
                let weight = |t: usize, s: usize| to[lists.1[t] as usize] * from[s];
                gather_rows(out, first, lists, grad, weight, own);
            }
            _ => {
                let weight = |t: usize, s| self.factor(s, lists.1[t] as usize, t);
                gather_rows(out, first, lists, grad, weight, own);
            }
        }
    }

    /// The factor of edge `e` from source `s` to destination `d`.
    #[inline(always)]
    fn factor(&self, s: usize, d: usize, e: usize) -> f32 {
        let at = |factors: &Option<Vec<f32>>, i: usize| factors.as_ref().map_or(1.0, |all| all[i]);
        at(&self.to, d) * at(&self.from, s) * at(&self.edge, e)
    }
}

/// The factors of a block's edges, stored per endpoint: they are read more often than they would
/// fit into a cache if there were one per edge.
struct GcnNorm {
    /// The factor of each destination's own row.
    own: Vec<f32>,
    /// `1 / √(d_j + 1)` of each source.
    from: Vec<f32>,
    /// `1 / √(d_i + 1)` of each destination, times degree over sample size.
    to: Vec<f32>,
}

impl GcnNorm {
    fn of(block: &Block) -> Self {
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

/// Edge weights that make a sum over sampled edges an unbiased estimate of the sum over all; they
/// multiply the block's own.
pub(crate) fn whole_sum_weights(block: &Block) -> Option<Vec<f32>> {
    let scale = |d: usize| block.degrees()[d] as f32 / block.sources(d).len() as f32;
    let complete =
        (0..block.num_dst()).all(|d| block.degrees()[d] as usize == block.sources(d).len());
    if complete {
        return block.weights().map(<[f32]>::to_vec);
    }
    let scales =
        (0..block.num_dst()).flat_map(|d| std::iter::repeat_n(scale(d), block.sources(d).len()));
    Some(match block.weights() {
        Some(weights) => scales.zip(weights).map(|(s, w)| s * w).collect(),
        None => scales.collect(),
    })
}

/// The share of each edge's weight in those of its destination.
fn shares(block: &Block, weights: &[f32]) -> Vec<f32> {
    let mut shares = weights.to_vec();
    for d in 0..block.num_dst() {
        let own = &mut shares[block.indptr()[d] as usize..block.indptr()[d + 1] as usize];
        let total: f32 = own.iter().sum();
        let scale = if total > 0.0 { 1.0 / total } else { 0.0 };
        own.iter_mut().for_each(|w| *w *= scale);
    }
    shares
}

impl<'b> Tape<'b> {
    /// Applies `passing` to the rows of `x`, one per source: one row per destination.
    ///
    /// # Panics
    /// If `x` has not one row a source.
    pub fn pass(&mut self, passing: &Arc<Passing<'b>>, x: Var) -> Var {
        let ((rows, cols), block) = (self.shape(x), passing.block);
        assert_eq!(rows, block.num_src(), "pass: one row a source");
        let mut y = Tensor::scratch(block.num_dst(), cols);
        passing.forward(self.value(x).data(), cols, 0, y.data_mut());
        let passing = passing.clone();
        self.push(y, self.needs_grad(x), move |grads, grad| {
            let mut to_x = Tensor::scratch(rows, cols);
            passing.backward(grad.data(), cols, 0, to_x.data_mut());
            grads.add(x, to_x);
        })
    }
}
