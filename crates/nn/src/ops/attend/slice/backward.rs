//! Gradients of attention: of destinations, and of the sources of a task.

use super::{Attended, AttendedGradient, LISTS, Lists};
use crate::Tensor;
use crate::kernel::head_rows::dot;
use crate::kernel::row_source::add_scaled;
use crate::kernel::{math, multiversion, prefetch};
use crate::ops::attend::{AHEAD, SCORES_AHEAD, exponentials, leaky};

/// Edges of a source whose coefficients are computed at a time.
const RUN: usize = 64;

multiversion! {
    /// The [`Lists`] of the destinations from `first` on.
    pub(super) fn list_chunk(lists: &mut [f32], first: usize, of: &Attended<'_>, grad: &Tensor) {
        let slice = &of.slice;
        let heads = slice.heads.len();
        let mut weights = Vec::new();
        let mut dots = Vec::new();
        for (i, lists) in lists.chunks_exact_mut(LISTS * heads).enumerate() {
            let d = first + i;
            let (to, rest) = lists.split_at_mut(heads);
            let (top, rest) = rest.split_at_mut(heads);
            let (factor, rest) = rest.split_at_mut(heads);
            let (mean, to_score) = rest.split_at_mut(heads);
            to.copy_from_slice(of.to(d));
            of.scores(d, to, &mut weights);
            exponentials(&mut weights, top, factor);
            mean.fill(0.0);
            to_score.fill(0.0);
            dots.clear();
            let grad = grad.row(d);
            let list = slice.block.sources(d);
            for ((entry, source), weights) in
                slice.sources(d).enumerate().zip(weights.chunks_exact_mut(heads))
            {
                if let Some(&next) = list.get(entry + AHEAD) {
                    prefetch(of.rows.row(next as usize));
                }
                let row = of.rows.row(source as usize);
                let dropped = slice.kept.of(source as usize, d);
                for (h, columns) in slice.heads.iter().enumerate() {
                    let to_weight = dot(&grad[columns.clone()], &row[columns.clone()]) * dropped(h);
                    weights[h] *= factor[h];
                    mean[h] += weights[h] * to_weight;
                    dots.push(to_weight);
                }
            }
            let edges = weights.chunks_exact(heads).zip(dots.chunks_exact(heads));
            for (source, (weights, dots)) in slice.sources(d).zip(edges) {
                let from = of.from.row(source as usize);
                for (h, to_score) in to_score.iter_mut().enumerate() {
                    let slope = slope(from[h] + to[h], slice.attention.slope);
                    *to_score += weights[h] * (dots[h] - mean[h]) * slope;
                }
            }
        }
    }
}

multiversion! {
    /// The gradients of the rows from `first` on.
    pub(super) fn source_chunk(out: &mut [f32], first: usize, of: &AttendedGradient<'_>) {
        let attended = &of.attended;
        let slice = &attended.slice;
        let heads = slice.heads.len();
        let (offsets, all) = slice.block.out_lists();
        let mut weights = Vec::new();
        let mut targets = Vec::with_capacity(RUN);
        for (i, out) in out.chunks_exact_mut(slice.cols()).enumerate() {
            let source = first + i;
            let row = attended.rows.row(source);
            let from = attended.from.row(source);
            let (out, to_scores) = out.split_at_mut(slice.columns);
            let (to_score, of_destination) = to_scores.split_at_mut(heads);
            out.fill(0.0);
            to_score.fill(0.0);
            of_destination.copy_from_slice(Lists::of(of.lists.row(source)).to_score);
            let list = &all[offsets[source] as usize..offsets[source + 1] as usize];
            let mut left = slice.with_own(list, source);
            let mut done = 0;
            loop {
                targets.clear();
                targets.extend(left.by_ref().take(RUN));
                if targets.is_empty() {
                    break;
                }
                weights.clear();
                for (t, &target) in targets.iter().enumerate() {
                    if let Some(&next) = list.get(done + t + SCORES_AHEAD) {
                        prefetch(of.lists.row(next as usize));
                    }
                    let lists = Lists::of(of.lists.row(target as usize));
                    for (h, from) in from.iter().enumerate() {
                        let score = leaky(from + lists.to[h], slice.attention.slope);
                        weights.push(score - lists.top[h]);
                    }
                }
                weights.iter_mut().for_each(|weight| *weight = math::exp(*weight));
                for ((t, &target), weights) in
                    targets.iter().enumerate().zip(weights.chunks_exact(heads))
                {
                    if let Some(&next) = list.get(done + t + AHEAD) {
                        prefetch(of.grad.row(next as usize));
                    }
                    let d = target as usize;
                    let grad = of.grad.row(d);
                    let lists = Lists::of(of.lists.row(d));
                    let dropped = slice.kept.of(source, d);
                    for (h, columns) in slice.heads.iter().enumerate() {
                        let grad = &grad[columns.clone()];
                        let weight = weights[h] * lists.factor[h];
                        let to_weight = dot(grad, &row[columns.clone()]) * dropped(h);
                        let slope = slope(from[h] + lists.to[h], slice.attention.slope);
                        to_score[h] += weight * (to_weight - lists.mean[h]) * slope;
                        add_scaled(&mut out[columns.clone()], grad, weight * dropped(h), false);
                    }
                }
                done += targets.len();
            }
        }
    }
}

/// Derivative of the LeakyReLU.
#[inline(always)]
fn slope(score: f32, below: f32) -> f32 {
    if score > 0.0 { 1.0 } else { below }
}
