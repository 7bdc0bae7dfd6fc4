//! Distances of one vector from many, and their gradients.

use super::multiversion;

/// Rows of `width` values.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) width: usize,
}

/// Partial sums kept side by side in a loop; they are added at the end, in order.
const LANES: usize = 16;
/// Added under roots so that the gradient at distance 0 is 0, not undefined.
const TINY: f32 = 1e-30;

/// Sum of `term` over corresponding values of the slices, which are of equal length.
///
/// Whole chunks have as many values as there are lanes, which the compiler knows: with slices and an index
/// the check of each access keeps it from computing lanes at once, and a sum takes 3 to 6 times as long.
#[inline(always)]
fn sum<const N: usize>(slices: [&[f32]; N], term: impl Fn([f32; N]) -> f32) -> f32 {
    let len = slices[0].len();
    let chunks = slices.map(|slice| slice[..len].as_chunks::<LANES>());
    let mut lanes = [0.0f32; LANES];
    for i in 0..len / LANES {
        let values = chunks.map(|(whole, _)| &whole[i]);
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += term(values.map(|values| values[lane]));
        }
    }
    let rest: f32 = (0..len % LANES).map(|k| term(chunks.map(|(_, rest)| rest[k]))).sum();
    lanes.iter().sum::<f32>() + rest
}

/// Adds the gradients of a score that is a sum over columns: `slope(q, c)` has the derivatives of a
/// column's term by the query's value and by the row's.
#[inline(always)]
fn add_columns(
    to_query: &mut [f32],
    to_rows: &mut [f32],
    grads: &[f32],
    query: &[f32],
    rows: Rows<'_>,
    slope: impl Fn(f32, f32) -> (f32, f32),
) {
    let width = rows.width;
    let pairs = rows.data.chunks_exact(width).zip(to_rows.chunks_exact_mut(width));
    for ((row, to_row), &grad) in pairs.zip(grads).filter(|(_, grad)| **grad != 0.0) {
        for (((q, c), to_q), to_c) in query.iter().zip(row).zip(to_query.iter_mut()).zip(to_row) {
            let (by_q, by_c) = slope(*q, *c);
            *to_q += grad * by_q;
            *to_c += grad * by_c;
        }
    }
}

multiversion! {
    /// `out[j] = ⟨q, c_j⟩`.
    pub(crate) fn product(out: &mut [f32], query: &[f32], rows: Rows<'_>) {
        for (out, row) in out.iter_mut().zip(rows.data.chunks_exact(rows.width)) {
            *out = sum([query, row], |[q, c]| q * c);
        }
    }
}

multiversion! {
    /// Adds the gradients of [`product`].
    pub(crate) fn product_grad(
        to_query: &mut [f32],
        to_rows: &mut [f32],
        grads: &[f32],
        query: &[f32],
        rows: Rows<'_>,
    ) {
        add_columns(to_query, to_rows, grads, query, rows, |q, c| (c, q));
    }
}

multiversion! {
    /// Converts products `out` into negated distances, given the squared norms of the row and of
    /// the others.
    pub(crate) fn from_products(out: &mut [f32], own: f32, others: &[f32]) {
        for (out, other) in out.iter_mut().zip(others) {
            *out = -(own + other - 2.0 * *out).max(0.0).sqrt();
        }
    }
}

multiversion! {
    /// `out[j] = −Σ |q − c_j|`.
    pub(crate) fn manhattan(out: &mut [f32], query: &[f32], rows: Rows<'_>) {
        for (out, row) in out.iter_mut().zip(rows.data.chunks_exact(rows.width)) {
            *out = -sum([query, row], |[q, c]| (q - c).abs());
        }
    }
}

multiversion! {
    /// Adds the gradients of [`manhattan`].
    pub(crate) fn manhattan_grad(
        to_query: &mut [f32],
        to_rows: &mut [f32],
        grads: &[f32],
        query: &[f32],
        rows: Rows<'_>,
    ) {
        add_columns(to_query, to_rows, grads, query, rows, |q, c| {
            let difference = q - c;
            let sign = if difference == 0.0 { 0.0 } else { 1.0f32.copysign(difference) };
            (-sign, sign)
        });
    }
}

multiversion! {
    /// `out[j] = −Σ |q − c_j|` over complex numbers, whose real parts come first.
    pub(crate) fn moduli(out: &mut [f32], query: &[f32], rows: Rows<'_>) {
        let dim = rows.width / 2;
        let (q, q_i) = query.split_at(dim);
        for (out, row) in out.iter_mut().zip(rows.data.chunks_exact(rows.width)) {
            let (c, c_i) = row.split_at(dim);
            *out = -sum([q, q_i, c, c_i], |[q, q_i, c, c_i]| {
                let (re, im) = (q - c, q_i - c_i);
                (re * re + im * im).sqrt()
            });
        }
    }
}

multiversion! {
    /// Adds the gradients of [`moduli`].
    pub(crate) fn moduli_grad(
        to_query: &mut [f32],
        to_rows: &mut [f32],
        grads: &[f32],
        query: &[f32],
        rows: Rows<'_>,
    ) {
        let (width, dim) = (rows.width, rows.width / 2);
        let (q, q_i) = query.split_at(dim);
        let (to_q, to_q_i) = to_query.split_at_mut(dim);
        let pairs = rows.data.chunks_exact(width).zip(to_rows.chunks_exact_mut(width));
        for ((row, to_row), &grad) in pairs.zip(grads).filter(|(_, grad)| **grad != 0.0) {
            let ((c, c_i), (to_c, to_c_i)) = (row.split_at(dim), to_row.split_at_mut(dim));
            let q = &q[..dim];
            let q_i = &q_i[..dim];
            let c = &c[..dim];
            let c_i = &c_i[..dim];
            let (to_q, to_q_i) = (&mut to_q[..dim], &mut to_q_i[..dim]);
            let (to_c, to_c_i) = (&mut to_c[..dim], &mut to_c_i[..dim]);
            for k in 0..dim {
                let (re, im) = (q[k] - c[k], q_i[k] - c_i[k]);
                let scale = grad / (re * re + im * im + TINY).sqrt();
                to_q[k] -= scale * re;
                to_q_i[k] -= scale * im;
                to_c[k] += scale * re;
                to_c_i[k] += scale * im;
            }
        }
    }
}

multiversion! {
    /// `out[j] = w · relu(q + c_j) + b`, the bias being the last of the weights.
    pub(crate) fn rectified(out: &mut [f32], query: &[f32], rows: Rows<'_>, weights: &[f32]) {
        let width = rows.width;
        let (w, bias) = (&weights[..width], weights[width]);
        for (out, row) in out.iter_mut().zip(rows.data.chunks_exact(width)) {
            *out = bias + sum([query, row, w], |[q, c, w]| w * (q + c).max(0.0));
        }
    }
}

multiversion! {
    /// Adds the gradients of [`rectified`].
    pub(crate) fn rectified_grad(
        to_query: &mut [f32],
        to_rows: &mut [f32],
        to_weights: &mut [f32],
        grads: &[f32],
        query: &[f32],
        rows: Rows<'_>,
        weights: &[f32],
    ) {
        let width = rows.width;
        let pairs = rows.data.chunks_exact(width).zip(to_rows.chunks_exact_mut(width));
        for ((row, to_row), &grad) in pairs.zip(grads).filter(|(_, grad)| **grad != 0.0) {
            let q = &query[..width];
            let c = &row[..width];
            let w = &weights[..width];
            let (to_q, to_c) = (&mut to_query[..width], &mut to_row[..width]);
            let to_w = &mut to_weights[..width];
            for k in 0..width {
                let value = q[k] + c[k];
                let on = if value > 0.0 { grad } else { 0.0 };
                to_q[k] += on * w[k];
                to_c[k] += on * w[k];
                to_w[k] += on * value;
            }
            to_weights[width] += grad;
        }
    }
}
