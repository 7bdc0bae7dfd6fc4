//! Left sides of products, saved for the gradients of right sides.

use std::ops::Range;

use super::bf16::{Rounded, RoundedRows};
use super::gemm::View;
use super::precision::{Precision, Right};
use crate::Tensor;

/// Rows of left sides, in the precision in which products read them.
pub(crate) enum Saved {
    F32(Tensor),
    Bf16(Rounded),
}

/// Some of the rows, to be made.
pub(crate) enum SavedRows<'a> {
    F32(&'a mut [f32]),
    Bf16(RoundedRows<'a>),
}

impl Saved {
    /// Rows of `k` values, of arbitrary content.
    pub(crate) fn scratch(precision: Precision, rows: usize, k: usize) -> Self {
        match precision {
            Precision::F32 => Self::F32(Tensor::scratch(rows, k)),
            Precision::Bf16 => Self::Bf16(Rounded::scratch(rows, k)),
        }
    }

    /// Successive rows, `count` at a time: a multiple of 32.
    pub(crate) fn chunks_mut(&mut self, count: usize) -> Vec<SavedRows<'_>> {
        match self {
            Self::F32(rows) => {
                let values = (count * rows.cols()).max(1);
                rows.data_mut().chunks_mut(values).map(SavedRows::F32).collect()
            }
            Self::Bf16(rows) => rows.chunks_mut(count).map(SavedRows::Bf16).collect(),
        }
    }

    /// `out = rowsᵀ · b`, on the calling thread: the gradient of the right side, where `b` of `n` columns is that of the
    /// result in these rows.
    pub(crate) fn gradient(&self, out: &mut [f32], n: usize, rows: Range<usize>, b: View<'_>) {
        match self {
            Self::F32(left) => {
                let k = left.cols();
                let transposed = View::rows(left.data(), k).skip(rows.start).t();
                Precision::F32.product(out, n, (k, n, rows.len()), transposed, b);
            }
            Self::Bf16(left) => left.gradient(out, n, rows, b),
        }
    }
}

impl SavedRows<'_> {
    /// Makes the rows by `fill`, which is given them one after the other, and writes their product with `right`: `out` is
    /// `m × n`, contiguous.
    pub(crate) fn product(
        self,
        fill: impl FnOnce(&mut [f32]),
        out: &mut [f32],
        (m, n, k): (usize, usize, usize),
        right: &Right<'_>,
    ) {
        match self {
            Self::F32(rows) => {
                fill(rows);
                right.product(out, n, (m, n, k), View::rows(rows, k));
            }
            Self::Bf16(mut rows) => {
                let mut values = Tensor::scratch(m, k);
                fill(values.data_mut());
                rows.round(values.data(), k);
                match right {
                    Right::Bf16(right) => {
                        right.product_of_rounded(out, n, (m, n, k), values.data(), &rows);
                    }
                    Right::F32(_) => right.product(out, n, (m, n, k), View::rows(values.data(), k)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(rows: usize, cols: usize, seed: u64) -> Tensor {
        let key = gnarl_common::rng::Key::new(seed);
        let value = |i| key.unit(i) as f32 - 0.5;
        Tensor::from_vec(rows, cols, (0..(rows * cols) as u64).map(value).collect())
    }

    /// Products of saved rows and gradients of their right sides are those of the rows themselves, to the last bit.
    #[test]
    fn saved_rows_multiply_as_the_rows_themselves() {
        const CHUNK: usize = 64;
        for precision in [Precision::F32, Precision::Bf16] {
            for (m, n, k) in [(150, 40, 33), (64, 70, 300), (1, 1, 1), (33, 16, 600)] {
                let a = values(m, k, 1);
                let b = values(k, n, 2);
                let dy = values(m, n, 3);
                let right = Right::new(precision, View::rows(b.data(), n), (k, n));
                let mut saved = Saved::scratch(precision, m, k);
                let mut out = Tensor::scratch(m, n);
                let chunks = saved.chunks_mut(CHUNK).into_iter();
                for (i, (rows, out)) in chunks.zip(out.data_mut().chunks_mut(CHUNK * n)).enumerate()
                {
                    let from = &a.data()[i * CHUNK * k..];
                    let fill = |to: &mut [f32]| to.copy_from_slice(&from[..to.len()]);
                    rows.product(fill, out, (out.len() / n, n, k), &right);
                }
                let mut plain = Tensor::scratch(m, n);
                right.product(plain.data_mut(), n, (m, n, k), View::rows(a.data(), k));
                assert_eq!(out.data(), plain.data(), "{precision:?}: {m} × {n} × {k}");

                for rows in [0..m, m / 3..m] {
                    let dy = View::rows(dy.data(), n).skip(rows.start);
                    let left = View::rows(a.data(), k).skip(rows.start);
                    let mut gradient = Tensor::scratch(k, n);
                    saved.gradient(gradient.data_mut(), n, rows.clone(), dy);
                    let mut plain = Tensor::scratch(k, n);
                    precision.product(plain.data_mut(), n, (k, n, rows.len()), left.t(), dy);
                    assert_eq!(gradient.data(), plain.data(), "{precision:?}: {rows:?} of {m}");
                }
            }
        }
    }
}
