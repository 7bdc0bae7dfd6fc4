//! Rows rounded to bf16 that wait for the backward pass, in half of the bytes.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use half::bf16;
use half::slice::HalfFloatSliceExt;

use super::Right;
use crate::Tensor;
use crate::kernel::gemm::View;

/// A row has a multiple of so many values, and there are a multiple of so many rows: those of two tiles.
pub(super) const MULTIPLE: usize = 32;

/// Rows of `k` values, each followed by zeros up to a [`MULTIPLE`].
pub(crate) struct Rounded {
    values: Tensor,
    rows: usize,
    k: usize,
}

/// Successive rows of them.
pub(crate) struct RoundedRows<'a>(&'a mut [bf16]);

impl Rounded {
    /// Rows of arbitrary content.
    pub(crate) fn scratch(rows: usize, k: usize) -> Self {
        let values = Tensor::scratch(rows.next_multiple_of(MULTIPLE), stride(k) / 2);
        Self { values, rows, k }
    }

    /// Successive rows, `count` at a time: a [`MULTIPLE`].
    pub(crate) fn chunks_mut(&mut self, count: usize) -> impl Iterator<Item = RoundedRows<'_>> {
        assert!(count.is_multiple_of(MULTIPLE), "{count} rows at a time");
        let values = (count * stride(self.k)).max(1);
        cast_slice_mut(self.values.data_mut()).chunks_mut(values).map(RoundedRows)
    }

    /// `out = rowsᵀ · b`, where `b` has `n` columns.
    pub(crate) fn gradient(&self, out: &mut [f32], n: usize, rows: Range<usize>, b: View<'_>) {
        let right = Right::new(b, (rows.len(), n));
        self.gradient_by(&right, out, n, rows);
    }

    /// `out = rowsᵀ · right`, where `right` has `n` columns.
    pub(super) fn gradient_by(&self, right: &Right, out: &mut [f32], n: usize, rows: Range<usize>) {
        assert!(rows.end <= self.rows, "rows {rows:?} of {}", self.rows);
        let k = self.k;
        let stride = stride(k);
        let values: &[bf16] = cast_slice(self.values.data());
        let values = &values[rows.start * stride..rows.end * stride];
        #[cfg(target_arch = "x86_64")]
        if let Right::Tiles(tiles) = right {
            return tiles.product_of_columns(out, n, (k, n, rows.len()), cast_slice(values));
        }
        let mut wide = Tensor::scratch(rows.len(), k);
        let each =
            wide.data_mut().chunks_exact_mut(k.max(1)).zip(values.chunks_exact(stride.max(1)));
        each.for_each(|(to, from)| from[..k].convert_to_f32_slice(to));
        right.product(out, n, (k, n, rows.len()), View::rows(wide.data(), k).t());
    }
}

impl RoundedRows<'_> {
    /// Writes rows of `k` values.
    pub(crate) fn round(&mut self, rows: &[f32], k: usize) {
        #[cfg(target_arch = "x86_64")]
        if super::is_native() {
            self.each(rows, k).for_each(|(to, row)| {
                // SAFETY: the instructions have been looked for.
                unsafe { super::pack::pack_row(cast_slice_mut(to), row) }
            });
            return;
        }
        self.round_anywhere(rows, k);
    }

    /// [`Self::round`] without instructions for it.
    pub(super) fn round_anywhere(&mut self, rows: &[f32], k: usize) {
        for (to, row) in self.each(rows, k) {
            to[..k].convert_from_f32_slice(row);
            to[k..].fill(bf16::ZERO);
        }
    }

    fn each<'b>(
        &'b mut self,
        rows: &'b [f32],
        k: usize,
    ) -> impl Iterator<Item = (&'b mut [bf16], &'b [f32])> {
        self.0.chunks_exact_mut(stride(k).max(1)).zip(rows.chunks_exact(k.max(1)))
    }

    /// The values with those behind them.
    #[cfg(any(target_arch = "x86_64", test))]
    pub(super) fn values(&self) -> &[bf16] {
        self.0
    }
}

impl Right {
    /// `out = a · self`, where `rounded` are the rows of `a`.
    pub(crate) fn product_of_rounded(
        &self,
        out: &mut [f32],
        stride: usize,
        shape: (usize, usize, usize),
        a: &[f32],
        rounded: &RoundedRows<'_>,
    ) {
        #[cfg(target_arch = "x86_64")]
        if let Self::Tiles(tiles) = self {
            return tiles.product_of_packed(out, stride, shape, cast_slice(rounded.values()));
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = rounded;
        self.product(out, stride, shape, View::rows(a, shape.2));
    }
}

/// Values from one row to the next.
fn stride(k: usize) -> usize {
    k.next_multiple_of(MULTIPLE)
}
