//! Sums by attention of the destinations of a task.

use super::Layer;
use crate::kernel::head_rows::{add_rows, dots};
use crate::kernel::{multiversion, prefetch};
use crate::ops::attend::{AHEAD, exponentials, leaky};

multiversion! {
    /// The sums of the destinations from `first` on, the scores of their edges, and what normalizes them.
    pub(super) fn sum_chunk(
        sums: &mut [f32],
        scores: &mut [f32],
        tops: &mut [f32],
        first: usize,
        of: &Layer<'_>,
    ) {
        let heads = of.shape.heads;
        let k = of.shape.k;
        let indptr = of.block.indptr();
        let indices = of.block.indices();
        let begin = indptr[first] as usize;
        let (of_sources, of_destinations) = of.vectors.data().split_at(heads * k);
        let mut to = vec![0.0f32; heads];
        let mut weights = Vec::new();
        for (i, tops) in tops.chunks_exact_mut(2 * heads).enumerate() {
            let d = first + i;
            let edges = indptr[d] as usize..indptr[d + 1] as usize;
            let sums = &mut sums[i * heads * k..(i + 1) * heads * k];
            let scores = &mut scores[(edges.start - begin) * heads..(edges.end - begin) * heads];
            let (top, factor) = tops.split_at_mut(heads);
            let own = of.x.row(d);
            dots(&mut to, own, of_destinations);
            for (e, scores) in edges.clone().zip(scores.chunks_exact_mut(heads)) {
                if let Some(&next) = indices.get(e + AHEAD) {
                    prefetch(of.x.row(next as usize));
                }
                let row = of.x.row(indices[e] as usize);
                dots(scores, row, of_sources);
                for (score, to) in scores.iter_mut().zip(&to) {
                    *score += to;
                }
            }
            weights.resize(scores.len(), 0.0);
            for (weight, score) in weights.iter_mut().zip(scores.iter()) {
                *weight = leaky(*score, of.slope);
            }
            exponentials(&mut weights, top, factor);
            for (source, weights) in indices[edges.clone()].iter().zip(weights.chunks_exact_mut(heads)) {
                let dropped = of.kept.of(*source as usize, d);
                for (h, weight) in weights.iter_mut().enumerate() {
                    *weight *= factor[h] * dropped(h);
                }
            }
            sums.fill(0.0);
            let sources = &indices[edges];
            add_rows(sums, k, |i| of.x.row(sources[i] as usize), &weights);
        }
    }
}
