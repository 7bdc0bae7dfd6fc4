//! Gradients of attention, task by task.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{Coefficients, Shape};
use crate::Tensor;
use crate::kernel::head_rows::dot;
use crate::kernel::row_source::add_scaled;
use crate::kernel::{math, multiversion, prefetch};
use crate::ops::attend::{AHEAD, SCORES_AHEAD, distances, leaky};

/// Edges of a source whose coefficients are computed at a time.
const RUN: usize = 64;

multiversion! {
    /// The gradients of the rows of the sources from `first` on, and those of the coefficients of their edges, which no
    /// other task writes.
    pub(super) fn source_chunk(
        out: &mut [f32],
        first: usize,
        of: &Coefficients<'_>,
        x: &Tensor,
        grad: &Tensor,
        to_edges: &[AtomicU32],
        shape: Shape,
    ) {
        let Shape { heads, width } = shape;
        let transpose = of.block.transpose();
        let mut weights = Vec::new();
        for (i, out) in out.chunks_exact_mut(x.cols()).enumerate() {
            let source = first + i;
            let row = x.row(source);
            let from = of.of_sources.row(source);
            out.fill(0.0);
            let all = transpose.indptr[source] as usize..transpose.indptr[source + 1] as usize;
            for begin in all.clone().step_by(RUN) {
                let run = begin..all.end.min(begin + RUN);
                weights.resize(run.len() * heads, 0.0);
                let rows = weights.chunks_exact_mut(heads);
                for (t, weights) in run.clone().zip(rows) {
                    if let Some(&next) = transpose.dst.get(t + SCORES_AHEAD) {
                        prefetch(of.of_lists.row(next as usize));
                    }
                    let (to, rest) = of.of_lists.row(transpose.dst[t] as usize).split_at(heads);
                    for (h, weight) in weights.iter_mut().enumerate() {
                        *weight = leaky(from[h] + to[h], of.slope) - rest[h];
                    }
                }
                weights.iter_mut().for_each(|weight| *weight = math::exp(*weight));
                for (t, weights) in run.zip(weights.chunks_exact(heads)) {
                    if let Some(&next) = transpose.dst.get(t + AHEAD) {
                        prefetch(grad.row(next as usize));
                    }
                    let d = transpose.dst[t] as usize;
                    let factor = &of.of_lists.row(d)[2 * heads..];
                    let dropped = of.kept.of(source, d);
                    let to_edges = &to_edges[transpose.edge[t] as usize * heads..][..heads];
                    for (h, grad) in grad.row(d).chunks_exact(width).enumerate() {
                        let at = h * width..(h + 1) * width;
                        let to_edge = dot(grad, &row[at.clone()]) * dropped(h);
                        to_edges[h].store(to_edge.to_bits(), Ordering::Relaxed);
                        let weight = weights[h] * factor[h] * dropped(h);
                        add_scaled(&mut out[at], grad, weight, false);
                    }
                }
            }
        }
    }
}

multiversion! {
    /// The gradients of the coefficients of the edges into a range of destinations.
    pub(super) fn dot_chunk(
        out: &mut [f32],
        destinations: (usize, usize),
        of: &Coefficients<'_>,
        x: &Tensor,
        grad: &Tensor,
        shape: Shape,
    ) {
        let Shape { heads, width } = shape;
        let indptr = of.block.indptr();
        let indices = of.block.indices();
        let mut rows = out.chunks_exact_mut(heads);
        for d in destinations.0..destinations.1 {
            let grad = grad.row(d);
            for (e, out) in (indptr[d] as usize..indptr[d + 1] as usize).zip(&mut rows) {
                if let Some(&next) = indices.get(e + AHEAD) {
                    prefetch(x.row(next as usize));
                }
                let source = indices[e] as usize;
                let row = x.row(source);
                let dropped = of.kept.of(source, d);
                for (h, out) in out.iter_mut().enumerate() {
                    let grad = &grad[h * width..(h + 1) * width];
                    *out = dot(grad, &row[h * width..(h + 1) * width]) * dropped(h);
                }
            }
        }
    }
}

multiversion! {
    /// Turns gradients of the coefficients of the edges of the destinations from `first` on into those of their scores before
    /// the LeakyReLU, which `sums` are set to the sums of.
    pub(super) fn score_chunk(
        edges: &mut [f32],
        sums: &mut [f32],
        first: usize,
        of: &Coefficients<'_>,
        heads: usize,
    ) {
        let indptr = of.block.indptr();
        let mut weights = Vec::new();
        let mut mean = vec![0.0f32; heads];
        let mut rest = edges;
        for (i, sums) in sums.chunks_exact_mut(heads).enumerate() {
            let d = first + i;
            let range = indptr[d] as usize..indptr[d + 1] as usize;
            let (grads, behind) = rest.split_at_mut(range.len() * heads);
            rest = behind;
            let (to, kept) = of.of_lists.row(d).split_at(heads);
            let (top, factor) = kept.split_at(heads);
            of.scores(range.clone(), to, &mut weights);
            distances(&mut weights, top);
            mean.fill(0.0);
            for (weights, grads) in weights.chunks_exact_mut(heads).zip(grads.chunks_exact(heads)) {
                for (h, weight) in weights.iter_mut().enumerate() {
                    *weight *= factor[h];
                    mean[h] += *weight * grads[h];
                }
            }
            sums.fill(0.0);
            let sources = &of.block.indices()[range];
            let all = weights.chunks_exact(heads).zip(grads.chunks_exact_mut(heads)).zip(sources);
            for ((weights, grads), &source) in all {
                let from = of.of_sources.row(source as usize);
                for (h, grad) in grads.iter_mut().enumerate() {
                    let slope = if from[h] + to[h] > 0.0 { 1.0 } else { of.slope };
                    *grad = weights[h] * (*grad - mean[h]) * slope;
                    sums[h] += *grad;
                }
            }
        }
    }
}
