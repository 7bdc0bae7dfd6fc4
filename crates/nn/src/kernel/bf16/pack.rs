//! Values rounded to bf16 and packed in pairs of the inner dimension.
//!
//! `unsafe` is for loads and stores whose ranges are those of the slices; callers have looked for the instructions.

use std::arch::x86_64::{
    __m512, __m512bh, __m512i, _mm512_cvtne2ps_pbh, _mm512_loadu_epi16, _mm512_maskz_loadu_ps,
    _mm512_permutexvar_epi16, _mm512_shuffle_i32x4, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};
use std::mem::transmute;

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};

use crate::Tensor;
use crate::kernel::gemm::View;

/// Columns of a vector of sums, and pairs of a vector of values.
pub(super) const LANES: usize = 16;

/// Pairs of one row of 16 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u32; LANES]);

impl Line {
    pub(super) const ZERO: Self = Self([0; LANES]);
}

/// Lines of arbitrary content, from the pool of buffers: fresh memory would be zeroed page by page.
pub(super) struct Lines(Tensor);

impl Lines {
    pub(super) fn scratch(len: usize) -> Self {
        Self(Tensor::scratch(len, LANES))
    }

    pub(super) fn get(&self) -> &[Line] {
        cast_slice(self.0.data())
    }

    pub(super) fn get_mut(&mut self) -> &mut [Line] {
        cast_slice_mut(self.0.data_mut())
    }
}

/// Rounds and packs the `k × n` matrix `b` as the right side of products: line `start + p · step` has pair `p` of the columns
/// from `16·v` on, where `place` gives `start` and `step` for `v`. Values up to `depth` pairs and 16 columns are zeros.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) fn pack_right(
    lines: &mut [Line],
    place: impl Fn(usize) -> (usize, usize),
    depth: usize,
    b: View<'_>,
    (k, n): (usize, usize),
) {
    if depth == 0 {
        return;
    }
    let is_transposed = !b.has_adjacent_columns();
    for vector in 0..n.div_ceil(LANES) {
        let first = vector * LANES;
        let cols = LANES.min(n - first);
        let (start, step) = place(vector);
        let lines = lines[start..].iter_mut().step_by(step).take(depth);
        let b = b.skip_cols(first);
        if is_transposed {
            pack_transposed(lines, b, (k, cols));
            continue;
        }
        let side = |row: usize| if row < k { b.row(row, cols) } else { &[] };
        for (pair, line) in lines.enumerate() {
            interleave(&mut line.0, side(2 * pair), side(2 * pair + 1));
        }
    }
}

/// Packs up to 16 columns whose values do not lie side by side.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn pack_transposed<'a>(
    mut lines: impl ExactSizeIterator<Item = &'a mut Line>,
    b: View<'_>,
    (k, cols): (usize, usize),
) {
    let columns = b.t();
    let mut column = [0.0; 2 * LANES];
    let mut first = 0;
    while lines.len() > 0 {
        let mut square = [Line::ZERO; LANES];
        let count = (2 * LANES).min(k.saturating_sub(first));
        for (c, pairs) in square.iter_mut().enumerate().take(cols) {
            if columns.has_adjacent_columns() {
                pack_row(&mut pairs.0, columns.skip_cols(first).row(c, count));
            } else {
                let values = column.iter_mut().zip(first..first + count);
                values.for_each(|(to, row)| *to = b.value(row, c));
                pack_row(&mut pairs.0, &column[..count]);
            }
        }
        transpose(&mut square);
        square.into_iter().zip(lines.by_ref()).for_each(|(from, to)| *to = from);
        first += 2 * LANES;
    }
}

/// Packs a row of the left side: its values follow each other in pairs.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) fn pack_row(to: &mut [u32], row: &[f32]) {
    for (to, row) in to.chunks_exact_mut(LANES).zip(row.chunks(2 * LANES)) {
        let (low, high) = row.split_at(row.len().min(LANES));
        let packed = as_integers(_mm512_cvtne2ps_pbh(load(high), load(low)));
        // SAFETY: both have 64 bytes.
        unsafe { to.as_mut_ptr().cast::<__m512i>().write_unaligned(packed) };
    }
}

/// Rounds up to 16 values of two rows to pairs; missing values are zero.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) fn interleave(to: &mut [u32; LANES], low: &[f32], high: &[f32]) {
    const ORDER: [i16; 2 * LANES] = {
        let mut order = [0; 2 * LANES];
        let mut i = 0;
        while i < LANES {
            order[2 * i] = i as i16;
            order[2 * i + 1] = (LANES + i) as i16;
            i += 1;
        }
        order
    };
    let rounded = as_integers(_mm512_cvtne2ps_pbh(load(high), load(low)));
    // SAFETY: the table has 64 bytes.
    let order = unsafe { _mm512_loadu_epi16(ORDER.as_ptr()) };
    let pairs = _mm512_permutexvar_epi16(order, rounded);
    // SAFETY: both have 64 bytes.
    unsafe { to.as_mut_ptr().cast::<__m512i>().write_unaligned(pairs) };
}

/// Turns 16 lines of 16 pairs around their diagonal.
#[target_feature(enable = "avx512f")]
pub(super) fn transpose(lines: &mut [Line; LANES]) {
    // SAFETY: lines are 64 bytes each, without gaps and aligned, and any bytes are values.
    let rows = unsafe { &mut *std::ptr::from_mut(lines).cast::<[__m512i; LANES]>() };
    let mut half = *rows;
    for i in 0..LANES / 2 {
        half[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
        half[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
    }
    // Line 4·i + j has, of each four columns, column j of lines 4·i to 4·i + 3.
    let mut fours = half;
    for i in 0..LANES / 4 {
        let [a, b, c, d] = [half[4 * i], half[4 * i + 1], half[4 * i + 2], half[4 * i + 3]];
        fours[4 * i] = _mm512_unpacklo_epi64(a, c);
        fours[4 * i + 1] = _mm512_unpackhi_epi64(a, c);
        fours[4 * i + 2] = _mm512_unpacklo_epi64(b, d);
        fours[4 * i + 3] = _mm512_unpackhi_epi64(b, d);
    }
    for j in 0..4 {
        let [a, b, c, d] = [fours[j], fours[4 + j], fours[8 + j], fours[12 + j]];
        let low = [_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0x88>(c, d)];
        let high = [_mm512_shuffle_i32x4::<0xdd>(a, b), _mm512_shuffle_i32x4::<0xdd>(c, d)];
        rows[j] = _mm512_shuffle_i32x4::<0x88>(low[0], low[1]);
        rows[4 + j] = _mm512_shuffle_i32x4::<0x88>(high[0], high[1]);
        rows[8 + j] = _mm512_shuffle_i32x4::<0xdd>(low[0], low[1]);
        rows[12 + j] = _mm512_shuffle_i32x4::<0xdd>(high[0], high[1]);
    }
}

/// Up to 16 values, with zeros behind them.
#[target_feature(enable = "avx512f")]
fn load(values: &[f32]) -> __m512 {
    // SAFETY: only as many values are read as there are.
    unsafe { _mm512_maskz_loadu_ps(mask(values.len()), values.as_ptr()) }
}

/// The lanes of the first values.
pub(super) fn mask(len: usize) -> u16 {
    if len >= LANES { u16::MAX } else { (1 << len) - 1 }
}

fn as_integers(pairs: __m512bh) -> __m512i {
    // SAFETY: both are 64 bytes of any value.
    unsafe { transmute::<__m512bh, __m512i>(pairs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_swaps_rows_and_columns() {
        if !is_x86_feature_detected!("avx512f") {
            return;
        }
        let mut lines =
            std::array::from_fn(|i| Line(std::array::from_fn(|j| (100 * i + j) as u32)));
        // SAFETY: the instructions have been looked for.
        unsafe { transpose(&mut lines) };
        for (i, line) in lines.iter().enumerate() {
            assert_eq!(line.0, std::array::from_fn(|j| (100 * j + i) as u32), "row {i}");
        }
    }
}
