//! Attention over lists of a table's rows, without a tape: that of inference, where sources are read where they are.

use gnarl_graph::blocks::Block;

use super::list_sums::{RowLists, RowTable};
use crate::kernel::chunks::each_chunk;
use crate::kernel::row_source::{Rows, add_scaled};
use crate::kernel::{math, multiversion, prefetch};
use crate::{EdgeAttention, Tape, Tensor, Var};

/// Lists per task.
const LISTS: usize = 64;
/// How many entries ahead scores are fetched into cache, and rows.
const SCORES_AHEAD: usize = 16;
const AHEAD: usize = 8;

/// Graph attention (Veličković et al., ICLR 2018, eq. 3–5) over rows that each have a node's messages, `heads` of
/// `width` values side by side, its scores as a source and its scores as a destination, one of both for each head.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attention {
    /// Number of heads.
    pub heads: usize,
    /// Width of one head's messages.
    pub width: usize,
    /// Slope of the scores' LeakyReLU below 0.
    pub slope: f32,
    /// True if destinations attend to themselves, too.
    pub self_loops: bool,
    /// Probability that a coefficient is dropped in training.
    pub dropout: f32,
}

impl Attention {
    /// Width of a row.
    pub fn cols(&self) -> usize {
        self.heads * (self.width + 2)
    }

    /// The messages of each list, weighted by the softmax over its scores, heads side by side; zeros for an empty list.
    /// `own` is the row of each list's destination.
    ///
    /// # Panics
    /// If the table has other columns or other values than `f32`, or fewer rows.
    pub fn of_lists(&self, table: RowTable<'_>, own: &[u32], lists: RowLists<'_>) -> Tensor {
        let rows = table.wide();
        assert_eq!(rows.cols, self.cols(), "attention: columns of a row");
        let mut out = Tensor::zeros(own.len(), self.heads * self.width);
        if out.cols() > 0 {
            each_chunk(out.data_mut(), LISTS * self.heads * self.width, &|i, out| {
                attend(out, i * LISTS, rows, own, lists, *self);
            });
        }
        out
    }

    /// The messages of each destination of a block, weighted likewise, on a tape; `x` has a row a source.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn of_block<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var) -> Var {
        let block = if self.self_loops { block.with_self_loops() } else { block };
        let messages = self.heads * self.width;
        let z = tape.slice_cols(x, 0, messages);
        let of_source = tape.slice_cols(x, messages, self.heads);
        let own = tape.head_rows(x, block.num_dst());
        let of_destination = tape.slice_cols(own, messages + self.heads, self.heads);
        let attention = EdgeAttention { slope: self.slope, dropout: self.dropout };
        tape.attend(block, z, (of_source, of_destination), attention)
    }
}

multiversion! {
    /// The lists from `first` on whose results fit into `out`.
    fn attend(
        out: &mut [f32],
        first: usize,
        rows: Rows<'_>,
        own: &[u32],
        lists: RowLists<'_>,
        of: Attention,
    ) {
        let Attention { heads, width, slope, self_loops, .. } = of;
        let messages = heads * width;
        let scores = |row: u32| &rows.get(row as usize)[messages..];
        let mut weights = Vec::new();
        // The largest scores of the heads, and then what normalizes their weights.
        let mut top = vec![0.0f32; heads];
        for (i, out) in out.chunks_exact_mut(messages).enumerate() {
            let list = first + i;
            let entries = lists.indptr[list] as usize..lists.indptr[list + 1] as usize;
            let sources = &lists.rows[entries.clone()];
            let own = own[list];
            // A loop of the graph is the only one.
            let looped = (self_loops && !sources.contains(&own)).then_some(own);
            let all = || looped.iter().chain(sources).copied();
            let to = &scores(own)[heads..];
            weights.clear();
            top.fill(f32::NEG_INFINITY);
            for (n, source) in all().enumerate() {
                if let Some(&next) = lists.rows.get(entries.start + n + SCORES_AHEAD) {
                    prefetch(scores(next));
                }
                for ((from, to), top) in scores(source).iter().zip(to).zip(&mut top) {
                    let sum = from + to;
                    let score = if sum < 0.0 { slope * sum } else { sum };
                    *top = top.max(score);
                    weights.push(score);
                }
            }
            for scores in weights.chunks_exact_mut(heads) {
                scores.iter_mut().zip(&top).for_each(|(score, top)| *score -= top);
            }
            weights.iter_mut().for_each(|score| *score = math::exp(*score));
            top.fill(0.0);
            for each in weights.chunks_exact(heads) {
                top.iter_mut().zip(each).for_each(|(sum, value)| *sum += value);
            }
            top.iter_mut().for_each(|sum| *sum = 1.0 / *sum);
            for (n, source) in all().enumerate() {
                if let Some(&next) = lists.rows.get(entries.start + n + AHEAD) {
                    prefetch(rows.get(next as usize));
                }
                let row = rows.get(source as usize);
                for (h, out) in out.chunks_exact_mut(width).enumerate() {
                    let weight = weights[n * heads + h] * top[h];
                    add_scaled(out, &row[h * width..(h + 1) * width], weight, n == 0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Mode, ParamsBuilder};
    use gnarl_common::rng::Key;
    use gnarl_graph::blocks::NodeInfo;

    #[test]
    fn lists_are_attended_to_as_blocks_are() {
        // A list with its own node, one without, an empty one, and one that is long.
        let lists = [vec![0, 3], vec![2, 4, 4], vec![], (0..9).collect::<Vec<u32>>()];
        let indptr: Vec<u32> = [0]
            .into_iter()
            .chain(lists.iter().scan(0, |end, list| {
                *end += list.len() as u32;
                Some(*end)
            }))
            .collect();
        let indices = lists.concat();
        let nodes = NodeInfo { ids: (0..9).collect(), degrees: vec![0; 9] };
        let block = Block::new(9, indptr.clone(), indices.clone(), None, Arc::new(nodes));
        let params = ParamsBuilder::new(Key::new(0)).build();
        for self_loops in [true, false] {
            let of = Attention { heads: 3, width: 5, slope: 0.2, self_loops, dropout: 0.0 };
            let values: Vec<f32> =
                (0..9 * of.cols()).map(|i| 2.0 * Key::new(4).normal(i as u64) as f32).collect();
            let mut tape = Tape::new(&params, Mode::Eval);
            let x = tape.dense(Tensor::from_vec(9, of.cols(), values.clone()));
            let expected = of.of_block(&mut tape, &block, x);
            let expected = tape.take(expected);
            let own = [0, 1, 2, 3];
            // Rows are wider than what is attended to.
            let stride = of.cols() + 2;
            let padded: Vec<f32> = values
                .chunks(of.cols())
                .flat_map(|row| row.iter().copied().chain([9.0, 9.0]))
                .collect();
            let table = RowTable::new(&padded, stride, of.cols());
            let lists = RowLists { indptr: &indptr, rows: &indices };
            let found = of.of_lists(table, &own, lists);
            assert_eq!(found.shape(), (4, 15));
            for (a, b) in expected.data().iter().zip(found.data()) {
                assert!((a - b).abs() < 1e-5, "{a} {b}");
            }
        }
    }
}
