//! Matrix products of values rounded to bf16, with sums of f32.
//!
//! Both sides are rounded to nearest, ties to even, and packed in pairs of the inner dimension; AMX multiplies tiles of
//! them, AVX512-BF16 a pair for each of 16 columns. Other processors round likewise and multiply by the kernels of f32.
//! A row of the result depends neither on the number of rows nor on the threads.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod pack;
mod rounded;

use half::bf16;

pub(crate) use rounded::{Rounded, RoundedRows};

use super::gemm::{View, gemm};

/// Returns whether the processor multiplies bf16.
pub(crate) fn is_native() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Returns whether the processor has tiles that this process may not use.
pub(crate) fn is_withheld() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_native() && amx::has_instructions() && !amx::is_native()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// The right side of products, rounded: made once for all tasks that use it.
pub(crate) enum Right {
    /// For AMX.
    #[cfg(target_arch = "x86_64")]
    Tiles(amx::Tiles),
    /// For AVX512-BF16.
    #[cfg(target_arch = "x86_64")]
    Panels(avx512::Panels),
    /// Of f32, row by row.
    Rounded(Vec<f32>),
}

impl Right {
    /// The `k × n` matrix `b`.
    pub(crate) fn new(b: View<'_>, (k, n): (usize, usize)) -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_native() {
            return if amx::is_native() {
                Self::Tiles(amx::Tiles::new(b, (k, n)))
            } else {
                Self::Panels(avx512::Panels::new(b, (k, n)))
            };
        }
        Self::Rounded(rounded(b, (k, n)))
    }

    /// `out = a · b`, where `a` is `m × k`; row `i` of the result starts at `out[i * stride]`.
    pub(crate) fn product(
        &self,
        out: &mut [f32],
        stride: usize,
        (m, n, k): (usize, usize, usize),
        a: View<'_>,
    ) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Tiles(tiles) => tiles.product(out, stride, (m, n, k), a),
            #[cfg(target_arch = "x86_64")]
            Self::Panels(panels) => panels.product(out, stride, (m, n, k), a),
            Self::Rounded(b) => {
                let left = rounded(a, (m, k));
                gemm(out, stride, (m, n, k), View::rows(&left, k), View::rows(b, n), false);
            }
        }
    }
}

/// The values of a matrix, rounded.
fn rounded(of: View<'_>, (rows, cols): (usize, usize)) -> Vec<f32> {
    let round = |value: f32| bf16::from_f32(value).to_f32();
    let row = |row: usize| (0..cols).map(move |col| round(of.value(row, col)));
    (0..rows).flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::rounded::MULTIPLE;
    use super::*;
    use crate::Tensor;

    /// The right side for each way that this processor has.
    fn sides(b: View<'_>, shape: (usize, usize)) -> Vec<Right> {
        #[allow(unused_mut, reason = "other processors have but one")]
        let mut sides = vec![Right::Rounded(rounded(b, shape))];
        #[cfg(target_arch = "x86_64")]
        if is_native() {
            sides.push(Right::Panels(avx512::Panels::new(b, shape)));
            if amx::is_native() {
                sides.push(Right::Tiles(amx::Tiles::new(b, shape)));
            }
        }
        sides
    }

    /// Values of many magnitudes and both signs.
    fn values(len: usize, seed: u64) -> Vec<f32> {
        let key = gnarl_common::rng::Key::new(seed);
        let value = |i: u64| {
            (key.unit(2 * i) - 0.5) as f32 * 2f32.powi((key.unit(2 * i + 1) * 9.0) as i32 - 4)
        };
        (0..len as u64).map(value).collect()
    }

    /// A matrix of that shape in a longer slice, transposed or not.
    fn view(data: &[f32], (rows, cols): (usize, usize), gap: usize, transposed: bool) -> View<'_> {
        if transposed { View::rows(data, rows + gap).t() } else { View::rows(data, cols + gap) }
    }

    /// Leaves values in the pool that show where padding is not written.
    fn spoil() {
        for lines in
            [1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 160, 192, 256, 512, 1024, 2048, 4096, 8192]
        {
            let mut buffers = [(); 3].map(|()| Tensor::scratch(lines, 16));
            buffers.iter_mut().for_each(|buffer| buffer.data_mut().fill(f32::NAN));
        }
    }

    proptest! {
        #[test]
        fn products_are_those_of_rounded_values(
            (m, n, k) in (0usize..40, 1usize..150, 0usize..70),
            (a_t, b_t) in any::<(bool, bool)>(),
            gap in 0usize..5,
            seed in any::<u64>(),
        ) {
            let data = [values((m + gap) * (k + gap) + 1, seed), values((k + gap) * (n + gap) + 1, seed ^ 1)];
            let a = view(&data[0], (m, k), gap, a_t);
            let b = view(&data[1], (k, n), gap, b_t);
            spoil();
            for side in sides(b, (k, n)) {
                let mut out = vec![f32::NAN; m * (n + gap)];
                side.product(&mut out, n + gap, (m, n, k), a);
                let round = |value: f32| f64::from(bf16::from_f32(value).to_f32());
                for i in 0..m {
                    for j in 0..n {
                        let terms = (0..k).map(|l| round(a.value(i, l)) * round(b.value(l, j)));
                        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                        let found = f64::from(out[i * (n + gap) + j]);
                        prop_assert!((found - sum).abs() <= 1e-5 * size + 1e-30, "({i}, {j}): {found} for {sum}");
                    }
                    prop_assert!(out[i * (n + gap) + n..(i + 1) * (n + gap)].iter().all(|v| v.is_nan()));
                }
            }
        }
    }

    #[test]
    fn wide_left_sides_multiply_as_narrow_ones() {
        const M: usize = 600;
        const N: usize = 33;
        const K: usize = 70;
        let a = values(M * K, 1);
        let b = values(K * N, 2);
        let transposed = View::rows(&a, M).t();
        spoil();
        for right in sides(View::rows(&b, N), (K, N)) {
            let mut all = vec![0.0; M * N];
            right.product(&mut all, N, (M, N, K), transposed);
            for row in (0..M).step_by(7) {
                let mut alone = vec![0.0; N];
                right.product(&mut alone, N, (1, N, K), transposed.skip(row));
                assert_eq!(alone, all[row * N..][..N], "row {row}");
            }
        }
    }

    #[test]
    fn rounded_rows_multiply_as_the_rows_themselves() {
        for (m, n, k) in [(64, 40, 33), (40, 70, 300), (1, 1, 1), (33, 16, 600)] {
            let a = values(m * k, 1);
            let dy = values(m * n, 3);
            let b = values(k * n, 2);
            spoil();
            let mut rounded = Rounded::scratch(m, k);
            let mut chunks: Vec<_> = rounded.chunks_mut(m.next_multiple_of(MULTIPLE)).collect();
            let [rows] = &mut chunks[..] else { panic!("one chunk") };
            rows.round_anywhere(&a, k);
            let anywhere = rows.values()[..m * k.next_multiple_of(MULTIPLE)].to_vec();
            rows.round(&a, k);
            assert_eq!(rows.values()[..anywhere.len()], anywhere, "{m} × {k}");
            let shape = (m, n, k);
            for right in sides(View::rows(&b, n), (k, n)) {
                let mut out = [vec![0.0; m * n], vec![0.0; m * n]];
                right.product(&mut out[0], n, shape, View::rows(&a, k));
                right.product_of_rounded(&mut out[1], n, shape, &a, rows);
                assert_eq!(out[0], out[1], "{shape:?}");
            }
            for rows in [0..m, m / 3..m] {
                let dy = View::rows(&dy, n).skip(rows.start);
                let left = View::rows(&a, k).skip(rows.start).t();
                for right in sides(dy, (rows.len(), n)) {
                    let mut out = [vec![0.0; k * n], vec![0.0; k * n]];
                    right.product(&mut out[0], n, (k, n, rows.len()), left);
                    rounded.gradient_by(&right, &mut out[1], n, rows.clone());
                    assert_eq!(out[0], out[1], "{rows:?} of {shape:?}");
                }
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_the_others() {
        const M: usize = 45;
        const N: usize = 70;
        const K: usize = 33;
        let a = values(M * K, 1);
        let b = values(K * N, 2);
        for right in sides(View::rows(&b, N), (K, N)) {
            let mut all = vec![0.0; M * N];
            right.product(&mut all, N, (M, N, K), View::rows(&a, K));
            for row in 0..M {
                let mut alone = vec![0.0; N];
                right.product(&mut alone, N, (1, N, K), View::rows(&a, K).skip(row));
                assert_eq!(alone, all[row * N..][..N], "row {row}");
            }
        }
    }

    #[test]
    fn values_that_are_not_finite_stay_so() {
        let b = [1.0, f32::INFINITY, f32::NAN, 2.0];
        for right in sides(View::rows(&b, 2), (2, 2)) {
            let mut out = [0.0; 2];
            right.product(&mut out, 2, (1, 2, 2), View::rows(&[1.0, 1.0], 2));
            assert!(out[0].is_nan() && out[1] == f32::INFINITY, "{out:?}");
        }
    }
}
