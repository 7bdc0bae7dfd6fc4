//! Additive attention (GAT: Veličković et al., ICLR 2018, eq. 3).
//!
//! For each destination and head the largest score and what normalizes the others are kept, and the backward pass computes
//! the coefficients again, as Dao et al. (FlashAttention, NeurIPS 2022, §3.1) do for dense attention. Beyond that it has one
//! value an edge and head.

mod backward;
mod forward;

use std::ops::Range;
use std::sync::atomic::AtomicU32;

use gnarl_graph::blocks::Block;
use rayon::prelude::*;
use zerocopy::FromBytes;

use self::backward::{dot_chunk, score_chunk, source_chunk};
use self::forward::list_chunk;
use super::kept::Kept;
use super::{Drawn, EdgeAttention, ROWS, SCORES_AHEAD, leaky, parts};
use crate::kernel::chunks::each_chunk;
use crate::kernel::gather::gather_sum;
use crate::kernel::prefetch;
use crate::kernel::row_source::Rows;
use crate::kernel::spans::over_edges;
use crate::ops::edge::by_destination;
use crate::{Tape, Tensor, Var};

impl<'b> Tape<'b> {
    /// `out[d, h] = Σ_e α[e, h] · x[source of e, h]` over the edges of `d`, where α is the softmax over these edges of
    /// `LeakyReLU(source[source of e, h] + destination[d, h])`. `x` has one row a source, made of one part a head side by
    /// side; `source` and `destination` have one column a head.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn attend(
        &mut self,
        block: &'b Block,
        x: Var,
        (source, destination): (Var, Var),
        attention: EdgeAttention,
    ) -> Var {
        let drawn = Drawn { key: self.next_key(), first: 0 };
        self.attend_some(block, x, (source, destination), attention, drawn)
    }

    /// Like [`Tape::attend`] for some of the heads, or some columns of each, and with a key that is drawn already.
    pub(crate) fn attend_some(
        &mut self,
        block: &'b Block,
        x: Var,
        (source, destination): (Var, Var),
        attention: EdgeAttention,
        drawn: Drawn,
    ) -> Var {
        let heads = self.shape(source).1;
        let cols = self.shape(x).1;
        assert!(heads > 0 && cols.is_multiple_of(heads), "attend: {cols} columns, {heads} heads");
        let EdgeAttention { slope, dropout } = attention;
        let shape = Shape { heads, width: cols / heads };
        assert_eq!(self.shape(x).0, block.num_src(), "attend: one row a source");
        assert_eq!(self.shape(source), (block.num_src(), heads), "attend: scores of sources");
        assert_eq!(self.shape(destination), (block.num_dst(), heads), "attend: of destinations");
        let scored = self.needs_grad(source) || self.needs_grad(destination);
        if shape.width == 0 {
            let none = Tensor::zeros(block.num_dst(), 0);
            // All ranks of an exchange send gradients, of whatever columns.
            return self.push(none, scored || self.needs_grad(x), move |grads, _| {
                grads.add(x, Tensor::zeros(block.num_src(), 0));
                grads.add(source, Tensor::zeros(block.num_src(), heads));
                grads.add(destination, Tensor::zeros(block.num_dst(), heads));
            });
        }
        let rows = self.value(x).clone();
        let mut of = Coefficients {
            block,
            of_sources: self.value(source).clone(),
            of_lists: Tensor::scratch(block.num_dst(), 3 * heads),
            slope,
            kept: Kept::new(block, drawn, dropout),
        };
        let y = of.sums(self.value(destination), &rows, shape);
        self.push(y, scored || self.needs_grad(x), move |grads, grad| {
            let mut to_edges = Tensor::scratch(block.num_edges(), heads);
            if grads.wants(x) {
                grads.add(x, of.to_rows(&mut to_edges, &rows, &grad, shape));
            } else {
                of.dots(&mut to_edges, &rows, &grad, shape);
            }
            if !scored {
                return;
            }
            let to_destination = of.to_scores(&mut to_edges);
            grads.add(destination, to_destination);
            if grads.wants(source) {
                let transpose = block.transpose();
                let mut to_source = Tensor::scratch(block.num_src(), heads);
                let csr = (&*transpose.indptr, &*transpose.edge);
                let edges = Rows::new(to_edges.data(), heads);
                gather_sum(to_source.data_mut(), csr, edges, |_, _| 1.0, None);
                grads.add(source, to_source);
            }
        })
    }
}

/// Split of rows into heads, `width` values each.
#[derive(Clone, Copy)]
struct Shape {
    heads: usize,
    width: usize,
}

/// Inputs of the coefficients of edges.
struct Coefficients<'b> {
    block: &'b Block,
    /// Scores of sources.
    of_sources: Tensor,
    /// Of each destination the scores, the largest sums of both scores behind the LeakyReLU, and the factors that normalize
    /// their exponentials, each with a value a head.
    of_lists: Tensor,
    slope: f32,
    kept: Kept<'b>,
}

impl Coefficients<'_> {
    /// The weighted sums; fills in what is kept of lists.
    fn sums(&mut self, destination: &Tensor, x: &Tensor, shape: Shape) -> Tensor {
        let heads = shape.heads;
        let cols = heads * shape.width;
        let _span = over_edges("attention", self.block.num_edges(), cols, 2.0);
        let mut y = Tensor::scratch(self.block.num_dst(), cols);
        let mut kept = std::mem::replace(&mut self.of_lists, Tensor::scratch(0, 0));
        let parts = y.data_mut().par_chunks_mut(ROWS * cols);
        let parts = parts.zip(kept.data_mut().par_chunks_mut(ROWS * 3 * heads));
        let of = &*self;
        parts.enumerate().for_each(|(i, (out, kept))| {
            list_chunk(out, kept, i * ROWS, of, destination, x, shape);
        });
        self.of_lists = kept;
        y
    }

    /// The gradient of the rows, from that of the sums; `to_edges` is set to that of the coefficients.
    fn to_rows(&self, to_edges: &mut Tensor, x: &Tensor, grad: &Tensor, shape: Shape) -> Tensor {
        let _span = over_edges("attention (gradient)", self.block.num_edges(), grad.cols(), 4.0);
        let mut to_x = Tensor::scratch(x.rows(), x.cols());
        let bytes = bytemuck::cast_slice_mut(to_edges.data_mut());
        let shared = <[AtomicU32]>::mut_from_bytes(bytes).expect("u32 is as large as f32");
        let shared = &*shared;
        each_chunk(to_x.data_mut(), ROWS * x.cols(), &|i, out| {
            source_chunk(out, i * ROWS, self, x, grad, shared, shape);
        });
        to_x
    }

    /// Sets `to_edges` to the gradient of the coefficients.
    fn dots(&self, to_edges: &mut Tensor, x: &Tensor, grad: &Tensor, shape: Shape) {
        let _span = over_edges("attention (gradient)", self.block.num_edges(), grad.cols(), 2.0);
        by_destination(to_edges.data_mut(), self.block, shape.heads, |first, last, out| {
            dot_chunk(out, (first, last), self, x, grad, shape);
        });
    }

    /// Turns the gradients of coefficients into those of sums of scores, and returns those of the destinations' scores.
    fn to_scores(&self, to_edges: &mut Tensor) -> Tensor {
        let heads = to_edges.cols();
        let _span = over_edges("edge scores (gradient)", self.block.num_edges(), heads, 4.0);
        let mut to_destination = Tensor::scratch(self.block.num_dst(), heads);
        let lists = to_destination.data_mut();
        let all = parts(self.block, to_edges.data_mut(), lists, (heads, heads));
        all.into_par_iter().for_each(|(first, edges, sums)| {
            score_chunk(edges, sums, first, self, heads);
        });
        to_destination
    }

    /// Sets `scores` to those of the edges at `edges`, one after the other, whose destination has the scores `to`.
    #[inline(always)]
    fn scores(&self, edges: Range<usize>, to: &[f32], scores: &mut Vec<f32>) {
        scores.resize(edges.len() * to.len(), 0.0);
        let rows = scores.chunks_exact_mut(to.len());
        let indices = self.block.indices();
        for (edge, scores) in edges.zip(rows) {
            if let Some(&next) = indices.get(edge + SCORES_AHEAD) {
                prefetch(self.of_sources.row(next as usize));
            }
            let from = self.of_sources.row(indices[edge] as usize);
            for ((score, from), to) in scores.iter_mut().zip(from).zip(to) {
                *score = leaky(from + to, self.slope);
            }
        }
    }
}
