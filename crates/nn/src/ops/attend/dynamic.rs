//! Dynamic attention over the edges of a block as one operation (GATv2: Brody et al., How Attentive are Graph Attention
//! Networks?, ICLR 2022, eq. 7).
//!
//! Sums of both endpoints' rows, which scores are made of, are never stored: the backward pass adds them up again. Kept are
//! the coefficients, one an edge and head.

use gnarl_graph::blocks::Block;
use rayon::prelude::*;

use super::kept::Kept;
use super::{AHEAD, Drawn, EdgeAttention, ROWS, exponentials, leaky, parts};
use crate::kernel::chunks::each_chunk;
use crate::kernel::elementwise;
use crate::kernel::head_rows::dot;
use crate::kernel::row_source::add_scaled;
use crate::kernel::spans::over_edges;
use crate::kernel::{multiversion, prefetch};
use crate::{ParamId, Tape, Tensor, Var};

/// Values that are summed up beside each other.
const LANES: usize = 16;

impl<'b> Tape<'b> {
    /// `out[d, h] = Σ_e α[e, h] · source[source of e, h]` over the edges of `d`, where α is the softmax over these edges of
    /// `scores[h] · LeakyReLU(source[source of e, h] + destination[d, h])`. `scores` is `heads × width`; `source` has one
    /// row a source and `destination` one a destination, both made of one part a head side by side.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn attend_dynamic(
        &mut self,
        block: &'b Block,
        (source, destination): (Var, Var),
        scores: ParamId,
        EdgeAttention { slope, dropout }: EdgeAttention,
    ) -> Var {
        let (heads, width) = self.params().shape(scores);
        let cols = heads * width;
        assert!(cols > 0, "attend_dynamic: no columns");
        assert_eq!(self.shape(source), (block.num_src(), cols), "attend_dynamic: sources");
        assert_eq!(self.shape(destination), (block.num_dst(), cols), "attend_dynamic: lists");
        let drawn = Drawn { key: self.next_key(), first: 0 };
        let of = Dynamic {
            block,
            source: self.value(source).clone(),
            destination: self.value(destination).clone(),
            scores: self.params().get(scores),
            heads,
            width,
            slope,
            kept: Kept::new(block, drawn, dropout),
        };
        let (y, weights) = of.sums();
        self.push(y, true, move |grads, grad| {
            let mut to_edges = Tensor::scratch(block.num_edges(), heads);
            let (to_lists, to_scores) = of.to_lists(&mut to_edges, &weights, &grad);
            for sums in to_scores {
                elementwise::add_assign(grads.param(scores), &sums);
            }
            grads.add(destination, to_lists);
            if grads.wants(source) {
                grads.add(source, of.to_sources(&to_edges, &weights, &grad));
            }
        })
    }
}

/// Inputs of the coefficients of edges.
struct Dynamic<'b> {
    block: &'b Block,
    source: Tensor,
    destination: Tensor,
    scores: &'b [f32],
    heads: usize,
    width: usize,
    slope: f32,
    kept: Kept<'b>,
}

impl Dynamic<'_> {
    /// The weighted sums, and the coefficients before dropout.
    fn sums(&self) -> (Tensor, Tensor) {
        let cols = self.heads * self.width;
        let _span = over_edges("attention", self.block.num_edges(), cols, 6.0);
        let mut y = Tensor::scratch(self.block.num_dst(), cols);
        let mut weights = Tensor::scratch(self.block.num_edges(), self.heads);
        let all = parts(self.block, weights.data_mut(), y.data_mut(), (self.heads, cols));
        all.into_par_iter().for_each(|(first, weights, out)| {
            list_chunk(out, weights, first, self);
        });
        (y, weights)
    }

    /// The gradient of the destinations' rows, and that of the score vectors, in parts that tasks found. `to_edges` is set
    /// to the gradient of scores.
    fn to_lists(
        &self,
        to_edges: &mut Tensor,
        weights: &Tensor,
        grad: &Tensor,
    ) -> (Tensor, Vec<Vec<f32>>) {
        let cols = self.heads * self.width;
        let _span = over_edges("attention (gradient)", self.block.num_edges(), cols, 8.0);
        let mut out = Tensor::scratch(self.block.num_dst(), cols);
        let all = parts(self.block, to_edges.data_mut(), out.data_mut(), (self.heads, cols));
        let sums = all.into_par_iter().map(|(first, to_edges, out)| {
            let mut sums = vec![0.0; cols];
            list_grads(out, to_edges, &mut sums, first, self, weights, grad);
            sums
        });
        let sums = sums.collect();
        (out, sums)
    }

    /// The gradient of the sources' rows.
    fn to_sources(&self, to_edges: &Tensor, weights: &Tensor, grad: &Tensor) -> Tensor {
        let _span = over_edges("attention (gradient)", self.block.num_edges(), grad.cols(), 6.0);
        let mut out = Tensor::scratch(self.source.rows(), self.source.cols());
        each_chunk(out.data_mut(), ROWS * self.source.cols(), &|i, out| {
            source_grads(out, i * ROWS, self, to_edges, weights, grad);
        });
        out
    }
}

/// `Σ_f scores[f] · LeakyReLU(from[f] + to[f])`, in interleaved sums.
#[inline(always)]
fn score(from: &[f32], to: &[f32], scores: &[f32], slope: f32) -> f32 {
    let mut sums = [0.0f32; LANES];
    let whole = from.len() / LANES * LANES;
    for at in (0..whole).step_by(LANES) {
        let from = &from[at..at + LANES];
        let to = &to[at..at + LANES];
        let scores = &scores[at..at + LANES];
        for i in 0..LANES {
            sums[i] += scores[i] * leaky(from[i] + to[i], slope);
        }
    }
    let rest = (whole..from.len()).map(|i| scores[i] * leaky(from[i] + to[i], slope));
    sums.iter().sum::<f32>() + rest.sum::<f32>()
}

multiversion! {
    /// The sums of the destinations from `first` on, and the coefficients of their edges.
    fn list_chunk(out: &mut [f32], weights: &mut [f32], first: usize, of: &Dynamic<'_>) {
        let &Dynamic { block, ref source, ref destination, scores, heads, width, slope, .. } = of;
        let indices = block.indices();
        let mut top = vec![0.0; heads];
        let mut factor = vec![0.0; heads];
        let mut rest = weights;
        for (i, out) in out.chunks_exact_mut(heads * width).enumerate() {
            let d = first + i;
            let edges = block.indptr()[d] as usize..block.indptr()[d + 1] as usize;
            let (weights, behind) = rest.split_at_mut(edges.len() * heads);
            rest = behind;
            let to = destination.row(d);
            for (e, weights) in edges.clone().zip(weights.chunks_exact_mut(heads)) {
                if let Some(&next) = indices.get(e + AHEAD) {
                    prefetch(source.row(next as usize));
                }
                let from = source.row(indices[e] as usize);
                for (h, weight) in weights.iter_mut().enumerate() {
                    let at = h * width..(h + 1) * width;
                    *weight = score(&from[at.clone()], &to[at.clone()], &scores[at], slope);
                }
            }
            exponentials(weights, &mut top, &mut factor);
            if edges.is_empty() {
                out.fill(0.0);
            }
            for (e, weights) in edges.clone().zip(weights.chunks_exact_mut(heads)) {
                let from = indices[e] as usize;
                let dropped = of.kept.of(from, d);
                let row = source.row(from);
                for (h, out) in out.chunks_exact_mut(width).enumerate() {
                    weights[h] *= factor[h];
                    let weight = weights[h] * dropped(h);
                    add_scaled(out, &row[h * width..(h + 1) * width], weight, e == edges.start);
                }
            }
        }
    }
}

multiversion! {
    /// The gradients of the rows of the destinations from `first` on, and those of the scores of their edges; adds their
    /// part of the gradient of the score vectors to `to_scores`.
    fn list_grads(
        out: &mut [f32],
        to_edges: &mut [f32],
        to_scores: &mut [f32],
        first: usize,
        of: &Dynamic<'_>,
        weights: &Tensor,
        grad: &Tensor,
    ) {
        let &Dynamic { block, ref source, ref destination, scores, heads, width, slope, .. } = of;
        let indices = block.indices();
        let mut mean = vec![0.0f32; heads];
        let mut rest = to_edges;
        for (i, out) in out.chunks_exact_mut(heads * width).enumerate() {
            let d = first + i;
            let edges = block.indptr()[d] as usize..block.indptr()[d + 1] as usize;
            let (to_edges, behind) = rest.split_at_mut(edges.len() * heads);
            rest = behind;
            let to = destination.row(d);
            let grad = grad.row(d);
            mean.fill(0.0);
            for (e, to_edge) in edges.clone().zip(to_edges.chunks_exact_mut(heads)) {
                if let Some(&next) = indices.get(e + AHEAD) {
                    prefetch(source.row(next as usize));
                }
                let from = indices[e] as usize;
                let dropped = of.kept.of(from, d);
                let row = source.row(from);
                let weights = weights.row(e);
                for (h, to_edge) in to_edge.iter_mut().enumerate() {
                    let at = h * width..(h + 1) * width;
                    *to_edge = dot(&grad[at.clone()], &row[at]) * dropped(h);
                    mean[h] += weights[h] * *to_edge;
                }
            }
            out.fill(0.0);
            for (e, to_edge) in edges.zip(to_edges.chunks_exact_mut(heads)) {
                let row = source.row(indices[e] as usize);
                let weights = weights.row(e);
                for (h, to_edge) in to_edge.iter_mut().enumerate() {
                    *to_edge = weights[h] * (*to_edge - mean[h]);
                    let at = h * width..(h + 1) * width;
                    let columns = row[at.clone()].iter().zip(&to[at.clone()]);
                    let sums = out[at.clone()].iter_mut().zip(&mut to_scores[at.clone()]);
                    for (((from, to), score), (out, to_score)) in columns.zip(&scores[at]).zip(sums) {
                        let sum = from + to;
                        let slope = if sum > 0.0 { 1.0 } else { slope };
                        *out += *to_edge * score * slope;
                        *to_score += *to_edge * sum * slope;
                    }
                }
            }
        }
    }
}

multiversion! {
    /// The gradients of the rows of the sources from `first` on.
    fn source_grads(
        out: &mut [f32],
        first: usize,
        of: &Dynamic<'_>,
        to_edges: &Tensor,
        weights: &Tensor,
        grad: &Tensor,
    ) {
        let &Dynamic { block, ref source, ref destination, scores, heads, width, slope, .. } = of;
        let transpose = block.transpose();
        for (i, out) in out.chunks_exact_mut(heads * width).enumerate() {
            let from = first + i;
            let row = source.row(from);
            out.fill(0.0);
            for t in transpose.indptr[from] as usize..transpose.indptr[from + 1] as usize {
                if let Some(&next) = transpose.dst.get(t + AHEAD) {
                    prefetch(grad.row(next as usize));
                    prefetch(destination.row(next as usize));
                }
                let d = transpose.dst[t] as usize;
                let edge = transpose.edge[t] as usize;
                let dropped = of.kept.of(from, d);
                let weights = weights.row(edge);
                let grad = grad.row(d);
                let to = destination.row(d);
                for (h, to_edge) in to_edges.row(edge).iter().enumerate() {
                    let weight = weights[h] * dropped(h);
                    let at = h * width..(h + 1) * width;
                    let columns = row[at.clone()].iter().zip(&to[at.clone()]);
                    let columns = columns.zip(&scores[at.clone()]).zip(&grad[at.clone()]);
                    for (out, (((from, to), score), grad)) in out[at].iter_mut().zip(columns) {
                        let slope = if from + to > 0.0 { 1.0 } else { slope };
                        *out += weight * grad + *to_edge * score * slope;
                    }
                }
            }
        }
    }
}
