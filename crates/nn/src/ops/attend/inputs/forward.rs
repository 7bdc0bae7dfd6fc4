//! The layer's result, range by range of destinations.

use std::ops::Range;

use rayon::prelude::*;

use super::{Layer, Lists, take};
use crate::Tensor;
use crate::kernel::elementwise::bias_then;
use crate::kernel::gemm::{Heads, View};
use crate::kernel::head_rows::{add_rows, dots};
use crate::kernel::precision::RightHeads;
use crate::kernel::{multiversion, prefetch};
use crate::ops::activation::{self, Activation};
use crate::ops::attend::{AHEAD, exponentials, leaky};

/// A range of destinations.
struct Task<'a> {
    first: usize,
    /// Empty if they are not kept, as the sums.
    scores: &'a mut [f32],
    tops: &'a mut [f32],
    sums: &'a mut [f32],
    out: &'a mut [f32],
}

impl Layer<'_> {
    /// The layer's result; fills `lists`.
    pub(super) fn forward(&self, lists: &mut Lists, act: Activation) -> Tensor {
        let Heads { heads, k, n } = self.shape;
        let _span = self.span("GAT layer", 4.0);
        let mut y = Tensor::scratch(self.block.num_dst(), heads * n);
        let right = RightHeads::new(self.precision, self.shape, View::rows(self.weight, heads * n));
        let keeps = lists.keeps;
        let mut scores = lists.scores.data_mut();
        let mut tops = lists.tops.data_mut();
        let mut sums = lists.sums.data_mut();
        let mut out = y.data_mut();
        let task = |range: Range<usize>| Task {
            first: range.start,
            scores: take(&mut scores, if keeps { self.edge_values(&range) } else { 0 }),
            tops: take(&mut tops, range.len() * 2 * heads),
            sums: take(&mut sums, if keeps { range.len() * heads * k } else { 0 }),
            out: take(&mut out, range.len() * heads * n),
        };
        let tasks: Vec<_> = self.ranges().map(task).collect();
        tasks.into_par_iter().for_each(|Task { first, scores, tops, sums, out }| {
            let rows = tops.len() / (2 * heads);
            let values = self.edge_values(&(first..first + rows));
            let mut own;
            let (sums, scores) = if keeps {
                (sums, scores)
            } else {
                own = [Tensor::scratch(rows, heads * k), Tensor::scratch(values, 1)];
                let [sums, scores] = &mut own;
                (sums.data_mut(), scores.data_mut())
            };
            sum_chunk(sums, scores, tops, first, self);
            if n > 0 {
                right.product(out, View::rows(sums, heads * k));
                bias_then(out, self.bias, |out| activation::forward(out, act));
            }
        });
        y
    }
}

multiversion! {
    /// The sums of the destinations from `first` on, the scores of their edges, and what normalizes them.
    fn sum_chunk(
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
