//! Matrix products on `gemm-f32`, one fixed chunk per task.
//!
//! The umbrella crate `gemm` would compile the kernels of five types, of which one is needed here.

use gemm_common::Parallelism;
use rayon::prelude::*;

use super::chunks::each_chunk;
use super::elementwise::add_chunk;
use crate::Tensor;

/// Rows of a product computed by one task.
pub(crate) const ROWS: usize = 512;
/// Rows summed over by one task of [`add_at_b`].
pub(crate) const DEPTH: usize = 2048;

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

    fn holds(&self, rows: usize, cols: usize) -> bool {
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

/// `out = a · b` in chunks of rows, head by head; `out` is contiguous. `epilogue` sees each chunk
/// of the result while it is in cache.
pub(crate) fn a_b(
    out: &mut [f32],
    Heads { heads, k, n }: Heads,
    a: View<'_>,
    b: View<'_>,
    epilogue: impl Fn(&mut [f32]) + Sync,
) {
    let cols = heads * n;
    if cols == 0 {
        return;
    }
    each_chunk(out, ROWS * cols, &|i, out| {
        let (a, rows) = (a.skip(i * ROWS), out.len() / cols);
        for h in 0..heads {
            let (a, b) = (a.skip_cols(h * k), b.skip_cols(h * n));
            gemm(&mut out[h * n..], cols, (rows, n, k), a, b, false);
        }
        epilogue(out);
    });
}

/// `out = a · bᵀ` in chunks of rows, head by head: the gradient of the left side of [`a_b`], `a`
/// being that of the result and `b` the right side.
pub(crate) fn a_bt(out: &mut [f32], Heads { heads, k, n }: Heads, a: View<'_>, b: View<'_>) {
    let cols = heads * k;
    if cols == 0 {
        return;
    }
    each_chunk(out, ROWS * cols, &|i, out| {
        let (a, rows) = (a.skip(i * ROWS), out.len() / cols);
        for h in 0..heads {
            let (a, b) = (a.skip_cols(h * n), b.skip_cols(h * n).t());
            gemm(&mut out[h * k..], cols, (rows, k, n), a, b, false);
        }
    });
}

/// `out += aᵀ · b` head by head: the gradient of the right side of [`a_b`], `a` being its left
/// side and `b` the gradient of its result, of `depth` rows. Partial sums over fixed ranges of
/// rows are added in order.
pub(crate) fn add_at_b(
    out: &mut [f32],
    Heads { heads, k, n }: Heads,
    depth: usize,
    a: View<'_>,
    b: View<'_>,
) {
    let cols = heads * n;
    let partial: Vec<Tensor> = (0..depth.div_ceil(DEPTH))
        .into_par_iter()
        .map(|i| {
            let first = i * DEPTH;
            let mut sum = Tensor::scratch(k, cols);
            let shape = (k, n, DEPTH.min(depth - first));
            for h in 0..heads.min(cols) {
                let a = a.skip(first).skip_cols(h * k).t();
                let b = b.skip(first).skip_cols(h * n);
                gemm(&mut sum.data_mut()[(h * n).min(k * cols)..], cols, shape, a, b, false);
            }
            sum
        })
        .collect();
    add_in_order(out, &partial);
}

/// `out += ` all of `partial`, in order, each value by one task.
pub(crate) fn add_in_order(out: &mut [f32], partial: &[Tensor]) {
    const CHUNK: usize = 4096;
    each_chunk(out, CHUNK, &|i, out| {
        let range = i * CHUNK..i * CHUNK + out.len();
        partial.iter().for_each(|p| add_chunk(out, &p.data()[range.clone()]));
    });
}
