//! Attention over the edges of a block as one operation: scores, their softmax, dropout, and the weighted sums of rows.
//!
//! One file or folder per form. Values of edges last as long as the work on their destination, but for one an edge and head,
//! or, of layers whose inputs learn, three.

mod additive;
mod dynamic;
mod inputs;
mod kept;
pub mod slice;

use gnarl_common::rng::Key;
use gnarl_graph::blocks::Block;

use crate::kernel::math;

/// Destinations or sources per task.
const ROWS: usize = 128;
/// How many edges ahead rows are fetched into cache.
const AHEAD: usize = 4;
/// How many edges ahead scores are fetched into cache.
const SCORES_AHEAD: usize = 32;

/// The constants of attention.
#[derive(Debug, Clone, Copy)]
pub struct EdgeAttention {
    /// Slope of the scores' LeakyReLU below 0.
    pub slope: f32,
    /// Probability that an edge's coefficient is dropped.
    pub dropout: f32,
}

/// Key and first head of a dropout mask.
#[derive(Clone, Copy)]
pub(crate) struct Drawn {
    /// Key of the operation, none outside training.
    pub key: Option<Key>,
    /// Number of the first head, among all of the layer.
    pub first: usize,
}

/// A task's first destination, the values of the edges of its destinations, and those of the destinations.
type Part<'a> = (usize, &'a mut [f32], &'a mut [f32]);

/// Splits values of edges and of destinations, with so many columns each, into those of tasks.
fn parts<'a>(
    block: &Block,
    mut edges: &'a mut [f32],
    mut lists: &'a mut [f32],
    (of_edges, of_lists): (usize, usize),
) -> Vec<Part<'a>> {
    let mut parts = Vec::with_capacity(block.num_dst().div_ceil(ROWS));
    for first in (0..block.num_dst()).step_by(ROWS) {
        let last = (first + ROWS).min(block.num_dst());
        let count = (block.indptr()[last] - block.indptr()[first]) as usize;
        let (own_edges, other_edges) = edges.split_at_mut(count * of_edges);
        let (own_lists, other_lists) = lists.split_at_mut((last - first) * of_lists);
        parts.push((first, own_edges, own_lists));
        edges = other_edges;
        lists = other_lists;
    }
    parts
}

#[inline(always)]
fn leaky(x: f32, slope: f32) -> f32 {
    if x > 0.0 { x } else { slope * x }
}

/// Turns scores of edges into the exponentials of their distances to the largest one of each head, which `top` is set to;
/// `factor` is set to what normalizes them.
#[inline(always)]
fn exponentials(scores: &mut [f32], top: &mut [f32], factor: &mut [f32]) {
    top.fill(f32::NEG_INFINITY);
    factor.fill(0.0);
    for scores in scores.chunks_exact(top.len()) {
        top.iter_mut().zip(scores).for_each(|(top, score)| *top = top.max(*score));
    }
    distances(scores, top);
    for values in scores.chunks_exact(factor.len()) {
        factor.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    factor.iter_mut().for_each(|sum| *sum = 1.0 / *sum);
}

/// Turns scores of edges into the exponentials of their distances to `top`.
#[inline(always)]
fn distances(scores: &mut [f32], top: &[f32]) {
    for scores in scores.chunks_exact_mut(top.len()) {
        scores.iter_mut().zip(top).for_each(|(score, top)| *score -= top);
    }
    scores.iter_mut().for_each(|score| *score = math::exp(*score));
}
