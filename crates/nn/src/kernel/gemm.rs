//! Matrix products on `gemm-f32`, on the calling thread.
//!
//! The umbrella crate `gemm` would compile the kernels of five types, of which one is needed here.

use gemm_common::Parallelism;

/// A matrix in a slice: element `(i, j)` is `data[i * row + j * col]`.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    data: &'a [f32],
    row: usize,
    col: usize,
}

impl<'a> View<'a> {
    /// Rows of `stride` values each, of which any prefix may be used.
    pub(crate) fn rows(data: &'a [f32], stride: usize) -> Self {
        Self { data, row: stride, col: 1 }
    }

    /// One value.
    pub(super) fn value(&self, row: usize, col: usize) -> f32 {
        self.data[row * self.row + col * self.col]
    }

    /// The values from the first one on, and the steps to the next row and the next column.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn parts(&self) -> (&'a [f32], usize, usize) {
        (self.data, self.row, self.col)
    }

    /// Returns true if the values of a row are adjacent.
    pub(super) fn has_adjacent_columns(&self) -> bool {
        self.col == 1
    }

    /// The first values of a row of adjacent ones.
    pub(super) fn row(&self, row: usize, len: usize) -> &'a [f32] {
        &self.data[row * self.row..][..len]
    }

    /// The transposed matrix.
    pub(crate) fn t(self) -> Self {
        Self { data: self.data, row: self.col, col: self.row }
    }

    /// The matrix without its first `rows` rows.
    pub(crate) fn skip(self, rows: usize) -> Self {
        Self { data: &self.data[(rows * self.row).min(self.data.len())..], ..self }
    }

    /// The matrix without its first `cols` columns.
    pub(crate) fn skip_cols(self, cols: usize) -> Self {
        Self { data: &self.data[(cols * self.col).min(self.data.len())..], ..self }
    }

    pub(super) fn holds(&self, rows: usize, cols: usize) -> bool {
        rows == 0 || cols == 0 || (rows - 1) * self.row + (cols - 1) * self.col < self.data.len()
    }
}

/// `out = a · b`, or `out += a · b` with `accumulate`, on the calling thread. `a` is `m × k`, `b`
/// is `k × n`; row `i` of the result starts at `out[i * stride]`.
pub(crate) fn gemm(
    out: &mut [f32],
    stride: usize,
    (m, n, k): (usize, usize, usize),
    a: View<'_>,
    b: View<'_>,
    accumulate: bool,
) {
    assert!(n <= stride && View::rows(out, stride).holds(m, n) && a.holds(m, k) && b.holds(k, n));
    // Kernels go down columns: rows that lie apart are computed as the columns of outᵀ = bᵀ · aᵀ.
    let (m, n, a, b, col_stride, row_stride) =
        if stride > 1 { (n, m, b.t(), a.t(), stride, 1) } else { (m, n, a, b, 1, stride) };
    let kernel = gemm_f32::gemm::f32::get_gemm_fn();
    // SAFETY: the assertion above keeps every element addressed within its slice, and `out` is
    // borrowed exclusively. No stride is negative, as the kernels ask.
    unsafe {
        kernel(
            m,
            n,
            k,
            out.as_mut_ptr(),
            col_stride as isize,
            row_stride as isize,
            accumulate,
            a.data.as_ptr(),
            a.col as isize,
            a.row as isize,
            b.data.as_ptr(),
            b.col as isize,
            b.row as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// A product of `heads` blocks side by side: in head `h`, columns `h·k..` of the left side meet
/// columns `h·n..` of the right side, which has `k` rows.
#[derive(Clone, Copy)]
pub(crate) struct Heads {
    pub(crate) heads: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
}

impl Heads {
    /// Columns of the result.
    pub(super) fn cols(&self) -> usize {
        self.heads * self.n
    }
}
