//! Additive attention (GAT: Veličković et al., ICLR 2018, eq. 3) on some columns of all nodes' rows, without a tape: that of
//! training in chunks, where all columns would not fit into memory.
//!
//! A slice may begin and end within a head. Nothing has a value an edge: coefficients are computed for every pass over the
//! lists, of which there is one forward and two backward, by destination and by source. The gradient of a score is linear
//! in that of its coefficient, which is a sum over columns: so slices add up to that of the whole head (NeutronTP, section
//! 4.1.1, shares coefficients of edges instead).

mod backward;
mod forward;
#[cfg(test)]
mod tests;

use std::ops::Range;

use gnarl_common::rng::Key;
use gnarl_graph::blocks::Block;

use self::backward::{list_chunk, source_chunk};
use self::forward::sum_chunk;
use super::kept::Kept;
use super::{Drawn, ROWS, SCORES_AHEAD, leaky};
use crate::Tensor;
use crate::exchange::heads_in;
use crate::kernel::chunks::each_chunk;
use crate::kernel::prefetch;
use crate::kernel::spans::over_edges;
use crate::ops::list_attention::Attention;

/// Attention over the edges of a block, on some of the columns of its messages.
///
/// A node's row has these columns, its scores as a source of the heads that they belong to, and its scores as a destination
/// of the same heads.
pub struct AttentionSlice<'b> {
    block: &'b Block,
    attention: Attention,
    /// The columns of each head, counted from the first one of the slice.
    heads: Vec<Range<usize>>,
    columns: usize,
    kept: Kept<'b>,
}

/// A slice of all nodes, ready to be attended to.
pub struct Attended<'b> {
    slice: AttentionSlice<'b>,
    rows: Tensor,
    /// Scores of sources alone.
    from: Tensor,
}

/// A slice of all nodes, and the gradient of what its destinations received.
pub struct AttendedGradient<'b> {
    attended: Attended<'b>,
    grad: Tensor,
    /// [`Lists`] of each destination.
    lists: Tensor,
}

/// The values of a destination, one a head each: what normalizes its coefficients, and gradients.
struct Lists<'l> {
    /// The destination's score.
    to: &'l [f32],
    /// The largest score.
    top: &'l [f32],
    /// Inverse of the sum of exponentials.
    factor: &'l [f32],
    /// The mean gradient of coefficients, by coefficient.
    mean: &'l [f32],
    /// The gradient of the destination's score.
    to_score: &'l [f32],
}

/// Values of [`Lists`] a head.
const LISTS: usize = 5;

impl<'l> Lists<'l> {
    #[inline(always)]
    fn of(row: &'l [f32]) -> Self {
        let heads = row.len() / LISTS;
        let part = |i: usize| &row[i * heads..(i + 1) * heads];
        let [to, top, factor, mean, to_score] = std::array::from_fn(part);
        Self { to, top, factor, mean, to_score }
    }
}

impl<'b> AttentionSlice<'b> {
    /// The slice `columns` of the heads of `attention`, side by side. Coefficients are dropped by `key`, if there is one.
    ///
    /// # Panics
    /// If sources of the block are no destinations.
    pub fn new(
        block: &'b Block,
        attention: Attention,
        columns: Range<usize>,
        key: Option<Key>,
    ) -> Self {
        assert_eq!(block.num_src(), block.num_dst(), "attention: destinations are all nodes");
        let touched = heads_in(&columns, attention.width);
        let drawn = Drawn { key, first: touched.start };
        let kept = Kept::new(block, drawn, attention.dropout);
        let within = |column: usize| column.clamp(columns.start, columns.end) - columns.start;
        let of_head = |h: usize| within(h * attention.width)..within((h + 1) * attention.width);
        let heads = touched.map(of_head).collect();
        Self { block, attention, heads, columns: columns.len(), kept }
    }

    /// Values of a row.
    pub fn cols(&self) -> usize {
        self.columns + 2 * self.heads.len()
    }

    /// The slice with these rows of all nodes.
    ///
    /// # Panics
    /// If they have another shape.
    pub fn attend(self, rows: Tensor) -> Attended<'b> {
        assert_eq!(rows.shape(), (self.block.num_src(), self.cols()), "attention: rows of a slice");
        let heads = self.heads.len();
        let mut from = Tensor::scratch(rows.rows(), heads);
        if heads > 0 {
            each_chunk(from.data_mut(), ROWS * heads, &|i, out| {
                for (n, out) in out.chunks_exact_mut(heads).enumerate() {
                    out.copy_from_slice(&rows.row(i * ROWS + n)[self.columns..][..heads]);
                }
            });
        }
        Attended { slice: self, rows, from }
    }

    /// The sources that destination `d` attends to: first itself, where it does so without an edge of its own.
    #[inline(always)]
    fn sources(&self, d: usize) -> impl Iterator<Item = u32> + Clone {
        self.with_own(self.block.sources(d), d)
    }

    /// An own entry, where there is none and nodes attend to themselves, and then the entries of a list.
    #[inline(always)]
    fn with_own<'l>(&self, list: &'l [u32], own: usize) -> impl Iterator<Item = u32> + Clone + 'l {
        let own = own as u32;
        let missing = self.attention.self_loops && !list.contains(&own);
        missing.then_some(own).into_iter().chain(list.iter().copied())
    }
}

impl<'b> Attended<'b> {
    /// The sums of the destinations from `first` on, as many as fit into `out`, over the slice's columns; zeros where a
    /// destination has no edges.
    pub fn sums(&self, first: usize, out: &mut [f32]) {
        let slice = &self.slice;
        if slice.columns == 0 {
            return;
        }
        let edges = slice.edges(first, out.len() / slice.columns);
        let _span = over_edges("attention", edges, slice.columns, 2.0);
        each_chunk(out, ROWS * slice.columns, &|i, out| {
            sum_chunk(out, first + i * ROWS, self);
        });
    }

    /// Prepares the gradients of rows, from that of all sums.
    ///
    /// # Panics
    /// If it has another shape.
    pub fn backward(self, grad: Tensor) -> AttendedGradient<'b> {
        let slice = &self.slice;
        let nodes = slice.block.num_dst();
        assert_eq!(grad.shape(), (nodes, slice.columns), "attention: gradient of a slice");
        let mut lists = Tensor::scratch(nodes, LISTS * slice.heads.len());
        if !slice.heads.is_empty() {
            let edges = slice.block.num_edges();
            let _span = over_edges("attention (gradient of scores)", edges, slice.columns, 2.0);
            each_chunk(lists.data_mut(), ROWS * LISTS * slice.heads.len(), &|i, lists| {
                list_chunk(lists, i * ROWS, &self, &grad);
            });
        }
        AttendedGradient { attended: self, grad, lists }
    }

    /// Fetches scores into cache.
    #[inline(always)]
    fn prefetch_scores(&self, list: &[u32], entry: usize) {
        if let Some(&next) = list.get(entry + SCORES_AHEAD) {
            prefetch(self.from.row(next as usize));
        }
    }

    /// Sets `scores` to those of the edges to `d`, which has the scores `to`.
    #[inline(always)]
    fn scores(&self, d: usize, to: &[f32], scores: &mut Vec<f32>) {
        let list = self.slice.block.sources(d);
        scores.clear();
        for (entry, source) in self.slice.sources(d).enumerate() {
            self.prefetch_scores(list, entry);
            let both = self.from.row(source as usize).iter().zip(to);
            scores.extend(both.map(|(from, to)| leaky(from + to, self.slice.attention.slope)));
        }
    }

    /// The scores of destination `d`.
    #[inline(always)]
    fn to(&self, d: usize) -> &[f32] {
        &self.rows.row(d)[self.slice.columns + self.slice.heads.len()..]
    }
}

impl AttendedGradient<'_> {
    /// The gradients of the rows from `first` on, as many as fit into `out`.
    pub fn gradients(&self, first: usize, out: &mut [f32]) {
        let slice = &self.attended.slice;
        if slice.cols() == 0 {
            return;
        }
        let edges = slice.edges(first, out.len() / slice.cols());
        let _span = over_edges("attention (gradient)", edges, slice.columns, 4.0);
        each_chunk(out, ROWS * slice.cols(), &|i, out| {
            source_chunk(out, first + i * ROWS, self);
        });
    }
}

impl AttentionSlice<'_> {
    /// Edges of so many destinations.
    fn edges(&self, first: usize, count: usize) -> usize {
        let indptr = self.block.indptr();
        (indptr[first + count] - indptr[first]) as usize
    }
}
