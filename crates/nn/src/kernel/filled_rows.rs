//! Products of rows of which many are zero, as the means of empty neighbor lists are: those are left out. A zero row has a
//! product of zeros, be there weights that are not finite.

use super::elementwise::add_chunk;
use super::gemm::{Heads, View};
use super::precision::RightHeads;
use crate::Tensor;

/// Share of zero rows, as a divisor, from which on leaving them out saves more than it costs to move the others.
const PAYS: usize = 8;
/// Rows of a product, and values of its result, from which on the kernels add in the same order whatever its size.
const ROWS: usize = 65;
const VALUES: usize = 257;
/// Inner dimension up to which that holds: they add longer ones in parts, by the size.
const DEPTH: usize = 512;

/// Rows of the left side of a product that are not zero.
pub(super) struct FilledRows {
    rows: Vec<u32>,
}

impl FilledRows {
    /// Those among the first `rows` rows of `a`; none if leaving out the others does not pay.
    pub(super) fn of(a: View<'_>, rows: usize, shape: Heads) -> Option<Self> {
        // A single column is a product of vectors, whose order of adding depends on all sizes.
        let is_fit = shape.n > 1 && (1..=DEPTH).contains(&shape.k);
        if !is_fit || rows / 2 < least(shape) || !a.has_adjacent_columns() {
            return None;
        }
        let width = shape.heads * shape.k;
        let most = rows - rows / PAYS;
        let is_filled = |&row: &u32| a.row(row as usize, width).iter().any(|&value| value != 0.0);
        let rows: Vec<u32> = (0..rows as u32).filter(is_filled).take(most).collect();
        (rows.len() < most).then_some(Self { rows })
    }

    /// The product of all rows: `out = a · b`, or `out += a · b` with `accumulate`, on the calling thread.
    pub(super) fn product(
        &self,
        out: &mut [f32],
        a: View<'_>,
        right: &RightHeads<'_>,
        accumulate: bool,
    ) {
        let shape = right.shape;
        let width = shape.heads * shape.k;
        let cols = shape.cols();
        // Zero rows behind the filled ones make the product large enough for its usual order.
        let rows = self.rows.len().max(least(shape));
        let mut left = Tensor::scratch(rows, width);
        let (filled, zero) = left.data_mut().split_at_mut(self.rows.len() * width);
        for (&row, to) in self.rows.iter().zip(filled.chunks_exact_mut(width)) {
            to.copy_from_slice(a.row(row as usize, width));
        }
        zero.fill(0.0);
        let mut product = Tensor::scratch(rows, cols);
        right.product(product.data_mut(), View::rows(left.data(), width));
        if !accumulate {
            out.fill(0.0);
        }
        for (&row, product) in self.rows.iter().zip(product.data().chunks_exact(cols)) {
            let out = &mut out[row as usize * cols..][..cols];
            if accumulate {
                add_chunk(out, product);
            } else {
                out.copy_from_slice(product);
            }
        }
    }
}

/// Least rows of a product in the usual order.
fn least(shape: Heads) -> usize {
    VALUES.div_ceil(shape.n).max(ROWS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::precision::Precision;
    use crate::kernel::products::{a_b, add_a_b};

    proptest! {
        #[test]
        fn zero_rows_are_left_out_without_a_change_of_a_bit(
            rows in 1usize..1200,
            every in 1usize..40,
            precision in prop::sample::select(vec![Precision::F32, Precision::Bf16]),
            (heads, k, n) in prop::sample::select(vec![
                (1, 512, 47),
                (1, 602, 47),
                (1, 300, 300),
                (1, 0, 64),
                (1, 5, 47),
                (4, 8, 16),
                (1, 7, 1),
                (2, 3, 2),
            ]),
        ) {
            let shape = Heads { heads, k, n };
            let filled = |row: usize| (row * row).is_multiple_of(every);
            let value = |i: usize| (i as f32 * 0.37).sin();
            let mut a: Vec<f32> = (0..rows * heads * k).map(value).collect();
            for (row, a) in a.chunks_exact_mut((heads * k).max(1)).enumerate() {
                if !filled(row) {
                    a.fill(0.0);
                }
            }
            let b: Vec<f32> = (0..k * heads * n).map(|i| value(i + 11)).collect();
            let (a, b) = (View::rows(&a, heads * k), View::rows(&b, heads * n));
            let mut plain = vec![f32::NAN; rows * heads * n];
            for (i, out) in plain.chunks_mut(512 * heads * n).enumerate() {
                RightHeads::new(precision, shape, b).product(out, a.skip(i * 512));
            }
            let mut product = vec![f32::NAN; plain.len()];
            a_b(precision, &mut product, shape, a, b, |_| ());
            prop_assert_eq!(&product, &plain);
            let own: Vec<f32> = (0..plain.len()).map(|i| value(i + 3)).collect();
            let mut sum = own.clone();
            add_a_b(precision, &mut sum, shape, a, b);
            for ((sum, own), product) in sum.iter().zip(own).zip(plain) {
                prop_assert_eq!(sum.to_bits(), (own + product).to_bits());
            }
        }
    }

    #[test]
    fn only_many_zero_rows_are_left_out() {
        let shape = Heads { heads: 1, k: 4, n: 47 };
        let found = |rows: usize, zero: usize| {
            let mut a = vec![1.0; rows * 4];
            a[..zero * 4].fill(0.0);
            FilledRows::of(View::rows(&a, 4), rows, shape).map(|filled| filled.rows.len())
        };
        assert_eq!(found(512, 65), Some(447));
        assert_eq!(found(512, 64), None);
        assert_eq!(found(512, 512), Some(0));
        assert_eq!(found(8, 8), None, "a few rows");
    }
}
