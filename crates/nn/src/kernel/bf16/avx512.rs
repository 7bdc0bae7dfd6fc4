//! Products by AVX512-BF16.
//!
//! Six rows of the left side meet 64 columns of the right one: 24 sums stay in registers while the inner dimension goes by,
//! for each of whose pairs four lines of the right side are loaded and six pairs of the left one are spread. The right side
//! streams from the second-level cache; the left one is packed tile by tile.
//!
//! `unsafe` is for the instructions, which the callers have looked for, and for loads and stores whose ranges are asserted
//! beforehand. It pays: one core of AMD's Zen 5 multiplies about twice as many values in a second as with f32.

use std::arch::x86_64::{
    __m512, __m512bh, __m512i, _mm512_dpbf16_ps, _mm512_mask_storeu_ps, _mm512_set1_epi32,
    _mm512_setzero_ps,
};
use std::mem::transmute;

use super::pack::{LANES, Line, Lines, interleave, mask, pack_right, pack_row};
use crate::kernel::gemm::View;

/// Vectors of a panel.
const VECTORS: usize = 4;
/// Rows of a tile.
const ROWS: usize = 6;
/// Rows of a transposed left side that are packed at once: a multiple of a tile and of a vector.
const BLOCK: usize = 48;

/// The right side: panels of 64 columns, the last one of fewer; in each, line after line of a pair of rows.
pub(crate) struct Panels {
    lines: Lines,
    k: usize,
    n: usize,
}

impl Panels {
    /// Rounds and packs the `k × n` matrix `b`.
    pub(super) fn new(b: View<'_>, (k, n): (usize, usize)) -> Self {
        assert!(b.holds(k, n), "the right side is {k} × {n}");
        let pairs = k.div_ceil(2);
        let mut lines = Lines::scratch(pairs * n.div_ceil(LANES));
        // SAFETY: `Right::new` has found the instructions.
        unsafe { pack_right(lines.get_mut(), |vector| place(vector, pairs, n), pairs, b, (k, n)) };
        Self { lines, k, n }
    }

    /// `out = a · self`, where `a` is `m × k`; row `i` of the result starts at `out[i * stride]`.
    pub(super) fn product(
        &self,
        out: &mut [f32],
        stride: usize,
        (m, n, k): (usize, usize, usize),
        a: View<'_>,
    ) {
        assert!((k, n) == (self.k, self.n) && a.holds(m, k), "the left side is {m} × {k}");
        assert!(n <= stride && View::rows(out, stride).holds(m, n), "the result is {m} × {n}");
        if k == 0 {
            out.chunks_mut(stride.max(1)).take(m).for_each(|row| row[..n].fill(0.0));
            return;
        }
        let (data, row, col) = a.parts();
        let pairs = k.div_ceil(2);
        let is_transposed = row == 1 && col != 1;
        let block = if is_transposed { BLOCK } else { ROWS };
        let line = pairs.div_ceil(LANES) * LANES;
        let mut left = vec![0; if is_transposed { pairs * BLOCK } else { ROWS * line }];
        for first in (0..m).step_by(block) {
            let rows = block.min(m - first);
            let out = &mut out[first * stride..];
            // SAFETY: `Right::new` has found the instructions.
            unsafe {
                if is_transposed {
                    pack_columns(&mut left, &data[first..], col, (rows, k));
                    self.block(out, stride, rows, (&left, 1, BLOCK));
                } else if col == 1 {
                    for i in 0..rows {
                        pack_row(&mut left[i * line..][..line], &data[(first + i) * row..][..k]);
                    }
                    self.block(out, stride, rows, (&left, line, 1));
                } else {
                    for i in 0..rows {
                        let values: Vec<f32> = (0..k).map(|l| a.value(first + i, l)).collect();
                        pack_row(&mut left[i * line..][..line], &values);
                    }
                    self.block(out, stride, rows, (&left, line, 1));
                }
            }
        }
    }

    /// Multiplies `rows` rows that are packed, `steps` apart by row and by pair.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    fn block(
        &self,
        out: &mut [f32],
        stride: usize,
        rows: usize,
        (left, row_step, pair_step): (&[u32], usize, usize),
    ) {
        let pairs = self.k.div_ceil(2);
        for first in (0..rows).step_by(ROWS) {
            let count = ROWS.min(rows - first);
            let left = (&left[first * row_step..], row_step, pair_step);
            for panel in (0..self.n).step_by(LANES * VECTORS) {
                let cols = (LANES * VECTORS).min(self.n - panel);
                let (start, vectors) = place(panel / LANES, pairs, self.n);
                let right = &self.lines.get()[start..start + pairs * vectors];
                let to = &mut out[first * stride + panel..];
                let shape = (count, cols);
                match vectors {
                    1 => tile::<1>(to, stride, shape, left, right),
                    2 => tile::<2>(to, stride, shape, left, right),
                    3 => tile::<3>(to, stride, shape, left, right),
                    _ => tile::<4>(to, stride, shape, left, right),
                }
            }
        }
    }
}

/// The first line of a vector of columns, and the lines from one pair to the next.
fn place(vector: usize, pairs: usize, n: usize) -> (usize, usize) {
    let panel = vector / VECTORS * VECTORS;
    let vectors = VECTORS.min(n.div_ceil(LANES) - panel);
    (panel * pairs + vector % VECTORS, vectors)
}

/// Writes a tile of `count` rows and `cols` columns.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn tile<const V: usize>(
    out: &mut [f32],
    stride: usize,
    (count, cols): (usize, usize),
    (left, row_step, pair_step): (&[u32], usize, usize),
    right: &[Line],
) {
    let pairs = right.len() / V;
    let last = (ROWS - 1) * row_step + pairs.saturating_sub(1) * pair_step;
    assert!(pairs == 0 || last < left.len(), "six rows are packed");
    let mut sums = [[_mm512_setzero_ps(); V]; ROWS];
    for (pair, lines) in right.chunks_exact(V).enumerate() {
        for (i, sums) in sums.iter_mut().enumerate() {
            // SAFETY: the assertion above is about the last of all.
            let value = unsafe { *left.get_unchecked(i * row_step + pair * pair_step) };
            let value = as_pairs(_mm512_set1_epi32(value as i32));
            for (sum, line) in sums.iter_mut().zip(lines) {
                // SAFETY: a line is as large and as aligned as a vector.
                let line = unsafe { *std::ptr::from_ref(line).cast::<__m512bh>() };
                *sum = _mm512_dpbf16_ps(*sum, value, line);
            }
        }
    }
    for (i, sums) in sums.iter().enumerate().take(count) {
        store(&mut out[i * stride..][..cols], sums);
    }
}

/// Writes the first values of some vectors.
#[target_feature(enable = "avx512f")]
fn store(out: &mut [f32], sums: &[__m512]) {
    for (out, &sum) in out.chunks_mut(LANES).zip(sums) {
        // SAFETY: only as many values are written as there are.
        unsafe { _mm512_mask_storeu_ps(out.as_mut_ptr(), mask(out.len()), sum) };
    }
}

/// Packs up to [`BLOCK`] rows of a transposed left side, which are columns of `data`, pair after pair.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn pack_columns(to: &mut [u32], data: &[f32], stride: usize, (rows, k): (usize, usize)) {
    for (pair, to) in to.chunks_exact_mut(BLOCK).enumerate() {
        let low = &data[2 * pair * stride..][..rows];
        let high = if 2 * pair + 1 < k { &data[(2 * pair + 1) * stride..][..rows] } else { &[] };
        for (v, to) in to.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let from = |side: &'_ [f32]| v * LANES..((v + 1) * LANES).min(side.len());
            let part = |side| <[f32]>::get(side, from(side)).unwrap_or(&[]);
            interleave(to, part(low), part(high));
        }
    }
}

fn as_pairs(integers: __m512i) -> __m512bh {
    // SAFETY: both are 64 bytes of any value.
    unsafe { transmute::<__m512i, __m512bh>(integers) }
}
