//! Sums of gathered rows: the kernel under message passing, sparse input and their gradients.

use gnarl_common::profile::{self, Work};

use super::chunks::{ROWS, each_chunk, each_of};
use super::multiversion;
use super::row_blocks::{self, row_block_chunk};
use super::row_source::{Offset, Own, RowSource, Rows, add_scaled};

/// For every row `r` of `out` (adjacent rows of `x.cols`): the sum over entries `e` in
/// `indptr[r]..indptr[r + 1]` of `weight(e, r) * x[indices[e]]`, plus `own(r) * x_own[r]` for rows
/// below `own_rows`.
pub(crate) fn gather_sum<O: Offset>(
    out: &mut [f32],
    (indptr, indices): (&[O], &[u32]),
    x: Rows<'_>,
    weight: impl Fn(usize, usize) -> f32 + Sync,
    own: Option<Own<'_>>,
) {
    gather_rows(out, 0, (indptr, indices), x, weight, own);
}

/// [`gather_sum`] over the rows of any table, for the rows from `first` on that fit into `out`.
pub(crate) fn gather_rows<O: Offset>(
    out: &mut [f32],
    first: usize,
    (indptr, indices): (&[O], &[u32]),
    table: impl RowSource,
    weight: impl Fn(usize, usize) -> f32 + Sync,
    own: Option<Own<'_>>,
) {
    let cols = table.cols();
    if cols == 0 {
        return;
    }
    let lists = &indptr[first..=first + out.len() / cols];
    let _span = profile::kernel("SpMM", || {
        let entries = lists.last().map_or(0, |last| last.at() - lists[0].at());
        let owned =
            own.map_or(0, |(_, count, _)| count.clamp(first, first + out.len() / cols) - first);
        let read = entries * (cols * table.value_bytes() + size_of::<u32>());
        let bytes = read + owned * cols * size_of::<f32>() + size_of_val(out);
        Work { flops: (2 * (entries + owned) * cols) as f64, bytes: bytes as f64 }
    });
    match row_blocks::plan(lists, indices, &table) {
        Some(plan) => each_of(out, cols, &plan.tasks, &|row, out| {
            let first = first + row;
            row_block_chunk(out, first, indptr, indices, &table, &weight, own, plan.block);
        }),
        None => each_chunk(out, ROWS * cols, &|i, out| {
            gather_chunk(out, cols, first + i * ROWS, indptr, indices, &table, &weight, own);
        }),
    }
}

multiversion! {
    /// [`gather_rows`] for the rows from `first` on that fit into `out`; they are `stride` apart.
    pub(crate) fn gather_chunk(
        out: &mut [f32],
        stride: usize,
        first: usize,
        indptr: &[impl Offset],
        indices: &[u32],
        table: &impl RowSource,
        weight: &impl Fn(usize, usize) -> f32,
        own: Option<Own<'_>>,
    ) {
        let mut scratch = table.scratch();
        let ahead = table.ahead();
        for (i, out) in out.chunks_mut(stride).enumerate() {
            let (row, out) = (first + i, &mut out[..table.cols()]);
            let mut fresh = true;
            if let Some((own_rows, count, own_weight)) = own
                && row < count
            {
                add_scaled(out, own_rows.get(row), own_weight(row), fresh);
                fresh = false;
            }
            for e in indptr[row].at()..indptr[row + 1].at() {
                if let Some(&next) = indices.get(e + ahead) {
                    table.prefetch(next as usize);
                }
                table.add(out, indices[e] as usize, weight(e, row), fresh, &mut scratch);
                fresh = false;
            }
            if fresh {
                out.fill(0.0);
            }
        }
    }
}
