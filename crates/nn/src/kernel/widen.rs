//! Rows that are stored in half the width: each is widened when it is read, and not before.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::prefetch;
use super::row_source::{RowSource, add_scaled};

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

/// Adjacent rows of `cols` stored values.
pub(crate) struct Widened<'a, W> {
    pub(crate) data: &'a [W],
    pub(crate) cols: usize,
}

impl<W: Widen> Widened<'_, W> {
    #[inline(always)]
    fn get(&self, row: usize) -> &[W] {
        &self.data[row * self.cols..(row + 1) * self.cols]
    }
}

impl<W: Widen> RowSource for Widened<'_, W> {
    fn cols(&self) -> usize {
        self.cols
    }

    fn bytes(&self) -> usize {
        size_of_val(self.data)
    }

    fn row_bytes(&self) -> usize {
        self.cols * size_of::<W>()
    }

    fn value_bytes(&self) -> usize {
        size_of::<W>()
    }

    fn ahead(&self) -> usize {
        16
    }

    fn scratch(&self) -> Vec<f32> {
        vec![0.0; self.cols]
    }

    #[inline(always)]
    fn prefetch(&self, row: usize) {
        prefetch(self.get(row));
    }

    #[inline(always)]
    fn add(&self, out: &mut [f32], row: usize, weight: f32, fresh: bool, scratch: &mut [f32]) {
        W::widen(self.get(row), scratch);
        add_scaled(out, scratch, weight, fresh);
    }
}
