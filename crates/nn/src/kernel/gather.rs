//! Sums of gathered rows: the kernel under message passing, sparse input and their gradients.

use std::ops::Range;

use super::chunks::each_chunk;
use super::row_blocks::{self, row_block_chunk};
use super::row_source::RowSource;
use super::{multiversion, prefetch};

/// Output rows per task.
pub(super) const ROWS: usize = 256;
/// Values of a row that are added up in registers.
const TILE: usize = 64;
/// Entries whose rows are added up tile by tile at a time.
const RUN: usize = 32;

/// Offsets of a compressed sparse structure.
pub(crate) trait Offset: Copy + Sync {
    /// As an index.
    fn at(self) -> usize;
}

impl Offset for u32 {
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

impl Offset for u64 {
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

/// Additional rows for the first outputs: the rows, their number, and the weight of each.
pub(crate) type Own<'a> = (Rows<'a>, usize, &'a (dyn Fn(usize) -> f32 + Sync));

/// Rows of `cols` values, `stride` apart.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) stride: usize,
    pub(crate) cols: usize,
}

impl<'a> Rows<'a> {
    /// Adjacent rows.
    pub(crate) fn new(data: &'a [f32], cols: usize) -> Self {
        Self { data, stride: cols, cols }
    }

    #[inline(always)]
    pub(crate) fn get(&self, row: usize) -> &'a [f32] {
        &self.data[row * self.stride..row * self.stride + self.cols]
    }
}

impl RowSource for Rows<'_> {
    fn cols(&self) -> usize {
        self.cols
    }

    fn bytes(&self) -> usize {
        size_of_val(self.data)
    }

    fn row_bytes(&self) -> usize {
        self.stride * size_of::<f32>()
    }

    fn ahead(&self) -> usize {
        8
    }

    fn scratch(&self) -> Vec<f32> {
        Vec::new()
    }

    #[inline(always)]
    fn prefetch(&self, row: usize) {
        prefetch(self.get(row));
    }

    #[inline(always)]
    fn add(&self, out: &mut [f32], row: usize, weight: f32, fresh: bool, _: &mut [f32]) {
        add_scaled(out, self.get(row), weight, fresh);
    }

    #[inline(always)]
    fn add_all(
        &self,
        out: &mut [f32],
        entries: Range<usize>,
        indices: &[u32],
        weight: impl Fn(usize) -> f32,
        _: &mut [f32],
    ) {
        // Sums stay in registers, tile by tile, and the rows of a run in the first cache from one tile to the next.
        let mut weights = [0.0; RUN];
        for begin in entries.clone().step_by(RUN) {
            let run = &indices[begin..entries.end.min(begin + RUN)];
            for (i, to) in weights.iter_mut().enumerate().take(run.len()) {
                *to = weight(begin + i);
            }
            let mut tiles = out.chunks_exact_mut(TILE);
            let mut col = 0;
            for tile in &mut tiles {
                let mut sums = [0.0; TILE];
                sums.copy_from_slice(tile);
                for (&row, weight) in run.iter().zip(weights) {
                    for (sum, value) in sums.iter_mut().zip(&self.get(row as usize)[col..][..TILE])
                    {
                        *sum += weight * value;
                    }
                }
                tile.copy_from_slice(&sums);
                col += TILE;
            }
            let rest = tiles.into_remainder();
            if !rest.is_empty() {
                for (&row, weight) in run.iter().zip(weights) {
                    add_scaled(rest, &self.get(row as usize)[col..], weight, false);
                }
            }
        }
    }
}

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
    match row_blocks::plan(lists, indices, &table) {
        Some(plan) => each_chunk(out, plan.rows * cols, &|i, out| {
            let first = first + i * plan.rows;
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

/// `out += w * row`, or `out = w * row` if `fresh`.
#[inline(always)]
pub(crate) fn add_scaled(out: &mut [f32], row: &[f32], w: f32, fresh: bool) {
    if fresh {
        for (o, v) in out.iter_mut().zip(row) {
            *o = w * v;
        }
    } else {
        for (o, v) in out.iter_mut().zip(row) {
            *o += w * v;
        }
    }
}
