//! Additive attention (GAT: Veličković et al., ICLR 2018, eq. 3) on some columns of all nodes' rows, without a tape: that of
//! training in chunks, where all columns would not fit into memory.
//!
//! A slice may begin and end within a head. Nothing has a value an edge: coefficients are computed for every pass over the
//! lists, of which there is one forward and two backward, by destination and by source. The gradient of a score is linear
//! in that of its coefficient, which is a sum over columns: so slices add up to that of the whole head (NeutronTP, section
//! 4.1.1, shares coefficients of edges instead).

mod backward;
mod forward;

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

    /// What the gradient of rows is made of, from that of all sums.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnarl_graph::blocks::NodeInfo;

    use super::*;
    use crate::{EdgeAttention, Mode, Params, ParamsBuilder, Tape};

    const NODES: usize = 40;
    const HEADS: usize = 3;
    const WIDTH: usize = 5;

    /// A graph with lists that are empty, that name a node twice, with loops, and one that is long.
    fn block() -> Block {
        let mut lists: Vec<Vec<u32>> = (0..NODES as u64)
            .map(|d| {
                let key = Key::new(3).with(d);
                (0..d % 7).map(|i| key.below(i, NODES as u64) as u32).collect()
            })
            .collect();
        lists[9] = vec![4, 4, 9];
        lists[20] = (0..NODES as u32).chain(0..NODES as u32).chain([20]).collect();
        let mut indptr = vec![0];
        lists.iter().for_each(|list| indptr.push(indptr[indptr.len() - 1] + list.len() as u32));
        let ids = (0..NODES as u64).map(|v| 7 * v).collect();
        let nodes = Arc::new(NodeInfo { ids, degrees: vec![0; NODES] });
        Block::new(NODES, indptr, lists.concat(), None, nodes)
    }

    fn values(rows: usize, cols: usize, seed: u64) -> Tensor {
        let values = (0..(rows * cols) as u64).map(|i| 2.0 * Key::new(seed).normal(i) as f32);
        Tensor::from_vec(rows, cols, values.collect())
    }

    /// Some columns of all rows.
    fn some(of: &Tensor, columns: &[Range<usize>]) -> Tensor {
        let row = |v: usize| columns.iter().flat_map(move |c| of.row(v)[c.clone()].to_vec());
        let values: Vec<f32> = (0..of.rows()).flat_map(row).collect();
        Tensor::from_vec(of.rows(), values.len() / of.rows(), values)
    }

    /// Sums and gradients of the messages, the scores of sources and those of destinations by operations on a tape.
    fn on_tape(
        params: &Params,
        block: &Block,
        attention: Attention,
        mode: Mode,
        [z, source, destination, grad]: &[Tensor; 4],
    ) -> [Tensor; 4] {
        let looped = if attention.self_loops { block.with_self_loops() } else { block };
        let mut tape = Tape::new(params, mode);
        let [z, source, destination] = [z, source, destination].map(|t| tape.leaf(t.clone()));
        let constants = EdgeAttention { slope: attention.slope, dropout: attention.dropout };
        let sums = tape.attend(looped, z, (source, destination), constants);
        let found = tape.value(sums).clone();
        tape.backward_from(vec![(sums, grad.clone())], &mut []).unwrap();
        let [z, source, destination] =
            [z, source, destination].map(|v| tape.grad(v).unwrap().clone());
        [found, z, source, destination]
    }

    #[test]
    fn slices_together_are_the_whole() {
        let block = block();
        let params = ParamsBuilder::new(Key::new(0)).build();
        let cols = HEADS * WIDTH;
        let given = [
            values(NODES, cols, 1),
            values(NODES, HEADS, 2),
            values(NODES, HEADS, 3),
            values(NODES, cols, 4),
        ];
        for (self_loops, dropout) in [(true, 0.0), (false, 0.0), (true, 0.4)] {
            let attention =
                Attention { heads: HEADS, width: WIDTH, slope: 0.2, self_loops, dropout };
            let mode = Mode::train(Key::new(8));
            let expected = on_tape(&params, &block, attention, mode, &given);
            for cuts in [vec![0, cols], vec![0, 4, 4, 11, cols], (0..=cols).collect()] {
                let mut found = expected.clone().map(|t| Tensor::zeros(t.rows(), t.cols()));
                let mut add = |to: usize, v: usize, first: usize, values: &[f32]| {
                    let cols = found[to].cols();
                    let out = &mut found[to].data_mut()[v * cols + first..];
                    out.iter_mut().zip(values).for_each(|(o, v)| *o += v);
                };
                for cut in cuts.windows(2) {
                    let columns = cut[0]..cut[1];
                    let slice =
                        AttentionSlice::new(&block, attention, columns.clone(), mode.key(1));
                    let heads = heads_in(&columns, WIDTH);
                    let scores = |of| some(of, std::slice::from_ref(&heads));
                    let parts = [
                        some(&given[0], std::slice::from_ref(&columns)),
                        scores(&given[1]),
                        scores(&given[2]),
                    ];
                    let row = |v: usize| parts.iter().flat_map(move |part| part.row(v).to_vec());
                    let rows = (0..NODES).flat_map(row).collect();
                    let width = slice.cols();
                    let attended = slice.attend(Tensor::from_vec(NODES, width, rows));
                    // Some destinations at a time.
                    for some in [0..13, 13..NODES] {
                        let mut out = vec![f32::NAN; some.len() * columns.len()];
                        attended.sums(some.start, &mut out);
                        for v in some.clone() {
                            let at = (v - some.start) * columns.len();
                            add(0, v, columns.start, &out[at..at + columns.len()]);
                        }
                    }
                    let backward =
                        attended.backward(some(&given[3], std::slice::from_ref(&columns)));
                    for some in [0..21, 21..NODES] {
                        let mut out = vec![f32::NAN; some.len() * width];
                        backward.gradients(some.start, &mut out);
                        for v in some.clone() {
                            let row = &out[(v - some.start) * width..][..width];
                            let (z, scores) = row.split_at(columns.len());
                            let (source, destination) = scores.split_at(heads.len());
                            add(1, v, columns.start, z);
                            add(2, v, heads.start, source);
                            add(3, v, heads.start, destination);
                        }
                    }
                }
                for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    for (at, (a, b)) in found.data().iter().zip(expected.data()).enumerate() {
                        let bound = 2e-5 * (1.0 + b.abs());
                        assert!((a - b).abs() < bound, "{cuts:?} {dropout}: {i}, {at}: {a} {b}");
                    }
                }
            }
        }
    }
}
