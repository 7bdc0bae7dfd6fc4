//! Aggregation over feature slices of heads side by side.

use std::ops::Range;

use gnarl_graph::blocks::Block;

use crate::exchange::heads_in;
use crate::ops::attend::Drawn;
use crate::{EdgeAttention, Lists, Tape, Var};

/// The feature slice of a matrix whose columns are equally wide heads. It may begin and end within
/// a head.
pub(super) struct HeadSlice {
    columns: Range<usize>,
    /// Columns of a head.
    width: usize,
}

/// Successive columns of a slice: some whole heads, or a part of one.
struct Run {
    /// Columns, counted from the first of the slice.
    columns: Range<usize>,
    heads: Range<usize>,
}

impl HeadSlice {
    /// The slice `columns` of heads of `width` columns.
    pub fn new(columns: Range<usize>, width: usize) -> Self {
        Self { columns, width }
    }

    /// The heads that have columns in the slice.
    pub fn heads(&self) -> Range<usize> {
        heads_in(&self.columns, self.width)
    }

    /// Whole heads at once, and the remainders of the first and the last one.
    fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut at = self.columns.start;
        while at < self.columns.end {
            let head = at / self.width;
            let whole = at.is_multiple_of(self.width);
            let heads = if whole { ((self.columns.end - at) / self.width).max(1) } else { 1 };
            let end = self.columns.end.min((head + heads) * self.width);
            let columns = at - self.columns.start..end - self.columns.start;
            runs.push(Run { columns, heads: head..head + heads });
            at = end;
        }
        runs
    }

    /// Dot products of the slice `x` of sources and the slice `y` of lists, one per edge and head of
    /// the slice; of a head that is cut, those of its columns in the slice.
    pub fn dot<'b>(&self, tape: &mut Tape<'b>, lists: &'b impl Lists, x: Var, y: Var) -> Var {
        let mut dots = Vec::new();
        for Run { columns, heads } in self.runs() {
            let x = tape.slice_cols(x, columns.start, columns.len());
            let y = tape.slice_cols(y, columns.start, columns.len());
            dots.push(tape.sddmm_dot(lists, x, y, heads.len()));
        }
        match dots.is_empty() {
            // No columns, but gradients: all ranks exchange theirs.
            true => tape.sddmm_dot(lists, x, y, 0),
            false => tape.concat_cols(&dots),
        }
    }

    /// Weighted sums over `lists` of the slice `x`. `weights` has a column per head, from head
    /// `first` on.
    pub fn sum<'b>(
        &self,
        tape: &mut Tape<'b>,
        lists: &'b impl Lists,
        x: Var,
        (weights, first): (Var, usize),
    ) -> Var {
        let mut sums = Vec::new();
        for Run { columns, heads } in self.runs() {
            let part = tape.slice_cols(x, columns.start, columns.len());
            let weights = tape.slice_cols(weights, heads.start - first, heads.len());
            sums.push(tape.spmm_weighted(lists, part, weights));
        }
        match sums.is_empty() {
            // No columns, but a gradient for the weights: all ranks exchange theirs.
            true => tape.spmm_weighted(lists, x, weights),
            false => tape.concat_cols(&sums),
        }
    }

    /// Sums by attention over the edges of `block` of the slice `x`. Scores of sources and of destinations have a column for
    /// each head of the whole matrix.
    pub fn attend<'b>(
        &self,
        tape: &mut Tape<'b>,
        block: &'b Block,
        x: Var,
        (source, destination): (Var, Var),
        attention: EdgeAttention,
    ) -> Var {
        let key = tape.next_key();
        let mut sums = Vec::new();
        for Run { columns, heads } in self.runs() {
            let part = tape.slice_cols(x, columns.start, columns.len());
            let source = tape.slice_cols(source, heads.start, heads.len());
            let destination = tape.slice_cols(destination, heads.start, heads.len());
            let drawn = Drawn { key, first: heads.start };
            sums.push(tape.attend_some(block, part, (source, destination), attention, drawn));
        }
        match sums.is_empty() {
            // No columns, but gradients for the scores: all ranks exchange theirs.
            true => {
                let drawn = Drawn { key, first: 0 };
                tape.attend_some(block, x, (source, destination), attention, drawn)
            }
            false => {
                let all = tape.concat_cols(&sums);
                sums.into_iter().filter(|part| *part != all).for_each(|part| tape.release(part));
                all
            }
        }
    }
}
