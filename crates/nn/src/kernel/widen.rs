//! Sums of gathered rows that are stored in half the width: each is widened when it is read, and not before.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::chunks::each_chunk;
use super::gather::{ROWS, add_scaled};
use super::{multiversion, prefetch};

/// How many entries ahead rows are fetched into cache.
const AHEAD: usize = 16;

/// A stored number that widens to f32.
pub(crate) trait Widen: Copy + Sync {
    /// Widens a row.
    fn widen(row: &[Self], out: &mut [f32]);
}

impl Widen for f16 {
    fn widen(row: &[Self], out: &mut [f32]) {
        row.convert_to_f32_slice(out);
    }
}

impl Widen for bf16 {
    fn widen(row: &[Self], out: &mut [f32]) {
        row.convert_to_f32_slice(out);
    }
}

/// [`super::gather::gather_sum`] over adjacent rows of `cols` stored values: the same additions.
pub(crate) fn gather_widened<W: Widen>(
    out: &mut [f32],
    (indptr, indices): (&[u32], &[u32]),
    (data, cols): (&[W], usize),
    weight: impl Fn(usize, usize) -> f32 + Sync,
) {
    if cols == 0 {
        return;
    }
    each_chunk(out, ROWS * cols, &|chunk, out| {
        widened_chunk(out, chunk * ROWS, indptr, indices, data, cols, &weight);
    });
}

multiversion! {
    /// [`gather_widened`] for the lists from `first` on that fit into `out`.
    fn widened_chunk(
        out: &mut [f32],
        first: usize,
        indptr: &[u32],
        indices: &[u32],
        data: &[impl Widen],
        cols: usize,
        weight: &impl Fn(usize, usize) -> f32,
    ) {
        let row_of = |row: u32| &data[row as usize * cols..(row as usize + 1) * cols];
        let mut wide = vec![0.0; cols];
        for (i, out) in out.chunks_exact_mut(cols).enumerate() {
            let list = first + i;
            let entries = indptr[list] as usize..indptr[list + 1] as usize;
            if entries.is_empty() {
                out.fill(0.0);
            }
            for (n, entry) in entries.enumerate() {
                if let Some(&next) = indices.get(entry + AHEAD) {
                    prefetch(row_of(next));
                }
                Widen::widen(row_of(indices[entry]), &mut wide);
                add_scaled(out, &wide, weight(entry, list), n == 0);
            }
        }
    }
}
