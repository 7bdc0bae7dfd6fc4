//! Parallel loops over whole buffers.

use rayon::prelude::*;

use super::chunks::{each_chunk, each_pair};
use super::multiversion;

/// Values per task: few enough for the first-level cache, enough to outweigh scheduling.
const CHUNK: usize = 1 << 14;

/// Applies `f` to corresponding chunks of `out` and `a`.
pub(crate) fn zip(out: &mut [f32], a: &[f32], f: impl Fn(&mut [f32], &[f32]) + Sync) {
    assert_eq!(out.len(), a.len());
    each_pair((out, CHUNK), (a, CHUNK), &f);
}

/// Copies in parallel.
pub(crate) fn copy(to: &mut [f32], from: &[f32]) {
    const CHUNK: usize = 1 << 16;
    each_pair((to, CHUNK), (from, CHUNK), &|to, from| to.copy_from_slice(from));
}

/// `out += a`.
pub(crate) fn add_assign(out: &mut [f32], a: &[f32]) {
    zip(out, a, add_chunk);
}

/// `out *= a`.
pub(crate) fn mul_assign(out: &mut [f32], a: &[f32]) {
    zip(out, a, mul_chunk);
}

/// `out = factor * a`.
pub(crate) fn scale_into(out: &mut [f32], a: &[f32], factor: f32) {
    zip(out, a, |out, a| scale_chunk(out, a, factor));
}

multiversion! {
    /// `out += a` for one chunk.
    pub(crate) fn add_chunk(out: &mut [f32], a: &[f32]) {
        for (o, a) in out.iter_mut().zip(a) {
            *o += a;
        }
    }
}

multiversion! {
    fn mul_chunk(out: &mut [f32], a: &[f32]) {
        for (o, a) in out.iter_mut().zip(a) {
            *o *= a;
        }
    }
}

multiversion! {
    fn scale_chunk(out: &mut [f32], a: &[f32], factor: f32) {
        for (o, a) in out.iter_mut().zip(a) {
            *o = factor * a;
        }
    }
}

/// Adds the sum over all rows of `a` to `out` (the gradient of a bias), in fixed chunks.
pub(crate) fn add_column_sums(out: &mut [f32], a: &[f32]) {
    let cols = out.len();
    if cols == 0 {
        return;
    }
    let partial: Vec<Vec<f32>> = a
        .par_chunks(1024 * cols)
        .map(|rows| {
            let mut sum = vec![0.0; cols];
            column_sums(&mut sum, rows);
            sum
        })
        .collect();
    partial.iter().for_each(|sum| add_chunk(out, sum));
}

multiversion! {
    /// `sum += ` each row of `rows`.
    pub(crate) fn column_sums(sum: &mut [f32], rows: &[f32]) {
        for row in rows.chunks_exact(sum.len()) {
            for (s, v) in sum.iter_mut().zip(row) {
                *s += v;
            }
        }
    }
}

/// Applies `f` to every chunk of `out`.
pub(crate) fn each(out: &mut [f32], f: impl Fn(&mut [f32]) + Send + Sync) {
    each_chunk(out, CHUNK, &|_, chunk| f(chunk));
}

/// Adds `bias` to every row of `rows` and applies `f` to the row while it is in cache.
pub(crate) fn bias_then(rows: &mut [f32], bias: Option<&[f32]>, f: impl Fn(&mut [f32])) {
    if let Some(bias) = bias {
        add_bias(rows, bias);
    }
    f(rows);
}

multiversion! {
    fn add_bias(rows: &mut [f32], bias: &[f32]) {
        for row in rows.chunks_exact_mut(bias.len()) {
            for (v, b) in row.iter_mut().zip(bias) {
                *v += b;
            }
        }
    }
}

/// Adds the row `bias` to every row.
pub(crate) fn bias_rows(rows: &mut [f32], bias: &[f32]) {
    if !bias.is_empty() {
        each_chunk(rows, 1024 * bias.len(), &|_, rows| add_bias(rows, bias));
    }
}

/// The dot product, summed in `f64` over fixed chunks.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let chunk = |(a, b): (&[f32], &[f32])| -> f64 {
        a.iter().zip(b).map(|(&a, &b)| a as f64 * b as f64).sum()
    };
    let partial: Vec<f64> = a.par_chunks(CHUNK).zip(b.par_chunks(CHUNK)).map(chunk).collect();
    partial.iter().sum::<f64>() as f32
}

/// Applies `f` to chunks of whole rows of `cols` values.
pub(crate) fn each_rows(out: &mut [f32], cols: usize, f: impl Fn(&mut [f32]) + Send + Sync) {
    each_chunk(out, 256 * cols.max(1), &|_, rows| f(rows));
}

multiversion! {
    /// Sends `grad` back through dropout after ReLU: `y` is 0 where either of them cut.
    pub(crate) fn scale_relu_grad(grad: &mut [f32], y: &[f32], keep_scale: f32) {
        for (g, y) in grad.iter_mut().zip(y) {
            *g = if *y > 0.0 { *g * keep_scale } else { 0.0 };
        }
    }
}
