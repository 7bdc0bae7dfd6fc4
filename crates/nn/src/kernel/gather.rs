//! Sums of gathered rows: the kernel under message passing, sparse input and their gradients.

use super::chunks::each_chunk;
use super::{multiversion, prefetch};

/// Output rows per task.
pub(crate) const ROWS: usize = 256;
/// How many entries ahead rows are fetched into cache.
const AHEAD: usize = 8;

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

/// [`gather_sum`] for the rows from `first` on that fit into `out`.
pub(crate) fn gather_rows<O: Offset>(
    out: &mut [f32],
    first: usize,
    (indptr, indices): (&[O], &[u32]),
    x: Rows<'_>,
    weight: impl Fn(usize, usize) -> f32 + Sync,
    own: Option<Own<'_>>,
) {
    if x.cols == 0 {
        return;
    }
    each_chunk(out, ROWS * x.cols, &|i, out| {
        gather_chunk(out, x.cols, first + i * ROWS, indptr, indices, x, &weight, own);
    });
}

multiversion! {
    /// [`gather_sum`] for the rows from `first` on that fit into `out`; they are `stride` apart.
    pub(crate) fn gather_chunk(
        out: &mut [f32],
        stride: usize,
        first: usize,
        indptr: &[impl Offset],
        indices: &[u32],
        x: Rows<'_>,
        weight: &impl Fn(usize, usize) -> f32,
        own: Option<Own<'_>>,
    ) {
        for (i, out) in out.chunks_mut(stride).enumerate() {
            let (row, out) = (first + i, &mut out[..x.cols]);
            let mut fresh = true;
            if let Some((own_rows, count, own_weight)) = own
                && row < count
            {
                add_scaled(out, own_rows.get(row), own_weight(row), fresh);
                fresh = false;
            }
            for e in indptr[row].at()..indptr[row + 1].at() {
                if let Some(&next) = indices.get(e + AHEAD) {
                    prefetch(x.get(next as usize));
                }
                add_scaled(out, x.get(indices[e] as usize), weight(e, row), fresh);
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
