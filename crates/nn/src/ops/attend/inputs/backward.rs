//! Gradients of the score vectors, range by range of destinations, and of the inputs, source by source.

use std::ops::Range;

use rayon::prelude::*;

use super::{Layer, Lists, take};
use crate::Tensor;
use crate::kernel::chunks::each_chunk;
use crate::kernel::gemm::{Heads, View};
use crate::kernel::head_rows::{add_rows, dots};
use crate::kernel::precision::RightHeads;
use crate::kernel::products::add_in_order;
use crate::kernel::row_source::add_scaled;
use crate::kernel::spans::over_edges;
use crate::kernel::{multiversion, prefetch};
use crate::ops::attend::{AHEAD, ROWS, distances, leaky};

/// Gradients that those of the inputs are made of.
struct Gradients {
    /// Of each edge the coefficients after dropout, one a head.
    coefficients: Tensor,
    /// Of each edge the gradients of the scores, before the LeakyReLU.
    scores: Tensor,
    /// Of each destination the sums of the gradients of its edges' scores.
    lists: Tensor,
    /// The gradients of the sums of rows.
    sums: Tensor,
}

/// The values of [`Gradients`] of a range of destinations.
struct GradientTask<'a> {
    first: usize,
    coefficients: &'a mut [f32],
    scores: &'a mut [f32],
    lists: &'a mut [f32],
    sums: &'a mut [f32],
}

impl Layer<'_> {
    /// The gradient of the score vectors from that of the products, and that of the inputs if it is wanted.
    pub(super) fn backward(
        &self,
        lists: Lists,
        grad: &Tensor,
        wants_inputs: bool,
    ) -> (Tensor, Option<Tensor>) {
        let Heads { heads, k, n } = self.shape;
        let Lists { scores: of_edges, tops, sums: of_rows, .. } = lists;
        let span = self.span("GAT layer (gradient)", 4.0);
        let weight = View::rows(self.weight, heads * n);
        let right = RightHeads::transposed(self.precision, self.shape, weight);
        let destinations = self.block.num_dst();
        let edges = if wants_inputs { self.block.num_edges() } else { 0 };
        let mut found = Gradients {
            coefficients: Tensor::scratch(edges, heads),
            scores: Tensor::scratch(edges, heads),
            lists: Tensor::scratch(destinations, heads),
            // The sums themselves are read no more.
            sums: if wants_inputs { of_rows } else { Tensor::scratch(0, heads * k) },
        };
        let mut coefficients = found.coefficients.data_mut();
        let mut scores = found.scores.data_mut();
        let mut of_lists = found.lists.data_mut();
        let mut sums = found.sums.data_mut();
        let kept = |values: usize| if wants_inputs { values } else { 0 };
        let task = |range: Range<usize>| GradientTask {
            first: range.start,
            coefficients: take(&mut coefficients, kept(self.edge_values(&range))),
            scores: take(&mut scores, kept(self.edge_values(&range))),
            lists: take(&mut of_lists, range.len() * heads),
            sums: take(&mut sums, kept(range.len() * heads * k)),
        };
        let tasks: Vec<_> = self.ranges().map(task).collect();
        let of_task = |task: GradientTask<'_>| {
            let rows = task.lists.len() / heads;
            let values = self.edge_values(&(task.first..task.first + rows));
            let mut own;
            let mut task = if wants_inputs {
                task
            } else {
                let [coefficients, scores] = [(); 2].map(|()| Tensor::scratch(values, 1));
                own = [coefficients, scores, Tensor::scratch(rows, heads * k)];
                let [coefficients, scores, sums] = own.each_mut().map(Tensor::data_mut);
                GradientTask { coefficients, scores, sums, ..task }
            };
            if k > 0 {
                let of_rows = View::rows(grad.data(), heads * n).skip(task.first);
                right.product(task.sums, of_rows);
            }
            let mut to_vectors = Tensor::zeros(2 * heads, k);
            gradient_chunk(to_vectors.data_mut(), &mut task, &of_edges, &tops, self);
            to_vectors
        };
        let partial: Vec<Tensor> = tasks.into_par_iter().map(of_task).collect();
        let mut to_vectors = Tensor::zeros(2 * heads, k);
        add_in_order(to_vectors.data_mut(), &partial);
        drop(span);
        (to_vectors, wants_inputs.then(|| self.to_inputs(&found)))
    }

    /// The gradient of the inputs.
    fn to_inputs(&self, found: &Gradients) -> Tensor {
        let Heads { heads, k, .. } = self.shape;
        let _span = over_edges("attention (gradient)", self.block.num_edges(), heads * k, 2.0);
        let mut to_x = Tensor::scratch(self.block.num_src(), k);
        each_chunk(to_x.data_mut(), ROWS * k.max(1), &|i, out| {
            source_chunk(out, i * ROWS, found, self)
        });
        to_x
    }
}

multiversion! {
    /// Adds the gradients of the score vectors by a task's destinations to `to_vectors`, and fills in the other gradients,
    /// of which those of sums are given.
    fn gradient_chunk(
        to_vectors: &mut [f32],
        task: &mut GradientTask<'_>,
        of_edges: &Tensor,
        of_lists: &Tensor,
        of: &Layer<'_>,
    ) {
        let heads = of.shape.heads;
        let k = of.shape.k;
        let indptr = of.block.indptr();
        let indices = of.block.indices();
        let begin = indptr[task.first] as usize;
        let (to_sources, to_destinations) = to_vectors.split_at_mut(heads * k);
        let mut mean = vec![0.0f32; heads];
        for (i, sum) in task.lists.chunks_exact_mut(heads).enumerate() {
            let d = task.first + i;
            let edges = indptr[d] as usize..indptr[d + 1] as usize;
            let sources = &indices[edges.clone()];
            let scores = &of_edges.data()[edges.start * heads..edges.end * heads];
            let (top, factor) = of_lists.row(d).split_at(heads);
            let to_sums = &task.sums[i * heads * k..(i + 1) * heads * k];
            let own = (edges.start - begin) * heads..(edges.end - begin) * heads;
            let weights = &mut task.coefficients[own.clone()];
            let gradients = &mut task.scores[own];
            for (weight, score) in weights.iter_mut().zip(scores) {
                *weight = leaky(*score, of.slope);
            }
            distances(weights, top);
            mean.fill(0.0);
            let values = weights.chunks_exact_mut(heads).zip(gradients.chunks_exact_mut(heads));
            for (e, (weights, gradients)) in edges.zip(values) {
                if let Some(&next) = indices.get(e + AHEAD) {
                    prefetch(of.x.row(next as usize));
                }
                let source = indices[e] as usize;
                dots(gradients, of.x.row(source), to_sums);
                let dropped = of.kept.of(source, d);
                for h in 0..heads {
                    gradients[h] *= dropped(h);
                    weights[h] *= factor[h];
                    mean[h] += weights[h] * gradients[h];
                }
            }
            sum.fill(0.0);
            let values = weights.chunks_exact_mut(heads).zip(scores.chunks_exact(heads));
            let values = gradients.chunks_exact_mut(heads).zip(values).zip(sources);
            for ((gradients, (weights, scores)), &source) in values {
                let dropped = of.kept.of(source as usize, d);
                for (h, gradient) in gradients.iter_mut().enumerate() {
                    let slope = if scores[h] > 0.0 { 1.0 } else { of.slope };
                    *gradient = weights[h] * (*gradient - mean[h]) * slope;
                    weights[h] *= dropped(h);
                    sum[h] += *gradient;
                }
            }
            add_rows(to_sources, k, |i| of.x.row(sources[i] as usize), gradients);
            add_rows(to_destinations, k, |_| of.x.row(d), sum);
        }
    }
}

multiversion! {
    /// The gradients of the inputs of the sources from `first` on.
    fn source_chunk(out: &mut [f32], first: usize, found: &Gradients, of: &Layer<'_>) {
        let heads = of.shape.heads;
        let k = of.shape.k;
        let transpose = of.block.transpose();
        let mut sums = vec![0.0f32; 2 * heads];
        for (i, out) in out.chunks_exact_mut(k).enumerate() {
            let source = first + i;
            out.fill(0.0);
            sums.fill(0.0);
            let (as_source, as_destination) = sums.split_at_mut(heads);
            for t in transpose.indptr[source] as usize..transpose.indptr[source + 1] as usize {
                if let Some(&next) = transpose.dst.get(t + AHEAD) {
                    prefetch(found.sums.row(next as usize));
                }
                let to_sums = found.sums.row(transpose.dst[t] as usize);
                let edge = transpose.edge[t] as usize;
                for (part, weight) in to_sums.chunks_exact(k).zip(found.coefficients.row(edge)) {
                    add_scaled(out, part, *weight, false);
                }
                for (sum, gradient) in as_source.iter_mut().zip(found.scores.row(edge)) {
                    *sum += gradient;
                }
            }
            if source < of.block.num_dst() {
                as_destination.copy_from_slice(found.lists.row(source));
            }
            for (vector, sum) in of.vectors.data().chunks_exact(k).zip(&sums) {
                add_scaled(out, vector, *sum, false);
            }
        }
    }
}
