//! Matrix products over all threads, one fixed chunk per task.

use rayon::prelude::*;

use super::chunks::each_chunk;
use super::elementwise::add_chunk;
use super::filled_rows::FilledRows;
use super::gemm::{Heads, View};
use super::precision::{Precision, RightHeads};
use super::spans::product;
use crate::Tensor;

/// Rows of a product computed by one task.
pub(crate) const ROWS: usize = 512;
/// Rows summed over by one task of [`add_at_b`].
pub(crate) const DEPTH: usize = 2048;

/// `out = a · b` in chunks of rows, head by head; `out` is contiguous. `epilogue` sees each chunk
/// of the result while it is in cache.
pub(crate) fn a_b(
    precision: Precision,
    out: &mut [f32],
    shape: Heads,
    a: View<'_>,
    b: View<'_>,
    epilogue: impl Fn(&mut [f32]) + Sync,
) {
    let cols = shape.cols();
    if cols == 0 {
        return;
    }
    let _span = product("matrix product", shape, out.len() / cols);
    let right = RightHeads::new(precision, shape, b);
    each_chunk(out, ROWS * cols, &|i, out| {
        let a = a.skip(i * ROWS);
        match FilledRows::of(a, out.len() / cols, shape) {
            Some(filled) => filled.product(out, a, &right, false),
            None => right.product(out, a),
        }
        epilogue(out);
    });
}

/// `out += a · b` in chunks of rows, head by head; `out` is contiguous, and of all columns.
pub(crate) fn add_a_b(
    precision: Precision,
    out: &mut [f32],
    shape: Heads,
    a: View<'_>,
    b: View<'_>,
) {
    let cols = shape.cols();
    if cols == 0 {
        return;
    }
    let _span = product("matrix product", shape, out.len() / cols);
    let right = RightHeads::new(precision, shape, b);
    each_chunk(out, ROWS * cols, &|i, out| {
        let (a, rows) = (a.skip(i * ROWS), out.len() / cols);
        if let Some(filled) = FilledRows::of(a, rows, shape) {
            return filled.product(out, a, &right, true);
        }
        // Kernels that accumulate would add to `out` part by part of the inner dimension.
        let mut product = Tensor::scratch(rows, cols);
        right.product(product.data_mut(), a);
        add_chunk(out, product.data());
    });
}

/// `out = a · bᵀ` in chunks of rows, head by head: the gradient of the left side of [`a_b`], `a`
/// being that of the result and `b` the right side.
pub(crate) fn a_bt(precision: Precision, out: &mut [f32], shape: Heads, a: View<'_>, b: View<'_>) {
    let cols = shape.heads * shape.k;
    if cols == 0 {
        return;
    }
    let _span = product("matrix product (input gradient)", shape, out.len() / cols);
    let right = RightHeads::transposed(precision, shape, b);
    each_chunk(out, ROWS * cols, &|i, out| right.product(out, a.skip(i * ROWS)));
}

/// `out += aᵀ · b` head by head: the gradient of the right side of [`a_b`], `a` being its left
/// side and `b` the gradient of its result, of `depth` rows. Partial sums over fixed ranges of
/// rows are added in order.
pub(crate) fn add_at_b(
    precision: Precision,
    out: &mut [f32],
    shape: Heads,
    depth: usize,
    a: View<'_>,
    b: View<'_>,
) {
    let _span = product("matrix product (weight gradient)", shape, depth);
    let Heads { heads, k, n } = shape;
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
                let to = &mut sum.data_mut()[(h * n).min(k * cols)..];
                precision.product(to, cols, shape, a, b);
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
