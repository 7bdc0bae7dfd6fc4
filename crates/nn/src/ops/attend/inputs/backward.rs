//! Gradients of the score vectors, of the destinations of a task, and of the inputs, of its sources.

use super::{GradientTask, Gradients, Layer, Lists};
use crate::kernel::head_rows::{add_rows, dots};
use crate::kernel::row_source::add_scaled;
use crate::kernel::{multiversion, prefetch};
use crate::ops::attend::{AHEAD, distances, leaky};

multiversion! {
    /// Adds the gradients of the score vectors by a task's destinations to `to_vectors`, and fills in the other gradients, of
    /// which those of sums are given.
    pub(super) fn gradient_chunk(
        to_vectors: &mut [f32],
        task: &mut GradientTask<'_>,
        lists: &Lists,
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
            let scores = &lists.scores.data()[edges.start * heads..edges.end * heads];
            let (top, factor) = lists.tops.row(d).split_at(heads);
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
    pub(super) fn source_chunk(out: &mut [f32], first: usize, found: &Gradients, of: &Layer<'_>) {
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
