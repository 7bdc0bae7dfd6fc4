//! Rows that several heads read: their dot products with a vector of each head, and sums of them with weights of each.
//!
//! Heads are taken four at a time, 16 columns of each in registers.

/// Columns of a tile.
const LANES: usize = 16;
/// Heads of a tile.
const HEADS: usize = 4;
/// Rows that are added tile by tile at a time, so that they stay in the first-level cache.
const RUN: usize = 32;

/// `out[h] = row · vectors[h]`, where the vectors lie one behind the other.
#[inline(always)]
pub(crate) fn dots(out: &mut [f32], row: &[f32], vectors: &[f32]) {
    let k = row.len();
    let mut first = 0;
    while first + HEADS <= out.len() {
        dots_of::<HEADS>(&mut out[first..], row, &vectors[first * k..]);
        first += HEADS;
    }
    while first < out.len() {
        dots_of::<1>(&mut out[first..], row, &vectors[first * k..]);
        first += 1;
    }
}

/// `a · b`.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut out = [0.0];
    dots_of::<1>(&mut out, a, b);
    out[0]
}

#[inline(always)]
fn dots_of<const H: usize>(out: &mut [f32], row: &[f32], vectors: &[f32]) {
    let k = row.len();
    let mut sums = [[0.0f32; LANES]; H];
    let (tiles, rest) = row.as_chunks::<LANES>();
    for (i, tile) in tiles.iter().enumerate() {
        for (h, sums) in sums.iter_mut().enumerate() {
            let vector = &vectors[h * k + i * LANES..][..LANES];
            for lane in 0..LANES {
                sums[lane] += tile[lane] * vector[lane];
            }
        }
    }
    for (h, sums) in sums.into_iter().enumerate() {
        let vector = &vectors[(h + 1) * k - rest.len()..(h + 1) * k];
        let rest: f32 = rest.iter().zip(vector).map(|(a, b)| a * b).sum();
        out[h] = sum(sums) + rest;
    }
}

/// The sum of lanes, by halves.
#[inline(always)]
fn sum(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// `out[h] += Σ_i weights[i, h] · row(i)` for each of the heads, whose rows of `k` values lie one behind the other.
#[inline(always)]
pub(crate) fn add_rows<'a>(
    out: &mut [f32],
    k: usize,
    row: impl Fn(usize) -> &'a [f32],
    weights: &[f32],
) {
    let heads = out.len().checked_div(k).unwrap_or(0);
    let rows = weights.len().checked_div(heads).unwrap_or(0);
    for begin in (0..rows).step_by(RUN) {
        let run = begin..rows.min(begin + RUN);
        for col in (0..k).step_by(LANES) {
            let mut first = 0;
            while first + HEADS <= heads && col + LANES <= k {
                add_tile::<HEADS>(out, (k, first, col), &row, weights, heads, run.clone());
                first += HEADS;
            }
            while first < heads {
                if col + LANES <= k {
                    add_tile::<1>(out, (k, first, col), &row, weights, heads, run.clone());
                } else {
                    for i in run.clone() {
                        let weight = weights[i * heads + first];
                        let out = &mut out[first * k + col..(first + 1) * k];
                        out.iter_mut().zip(&row(i)[col..]).for_each(|(o, v)| *o += weight * v);
                    }
                }
                first += 1;
            }
        }
    }
}

/// Adds to 16 columns from `col` on of `H` heads from `first` on.
#[inline(always)]
fn add_tile<'a, const H: usize>(
    out: &mut [f32],
    (k, first, col): (usize, usize, usize),
    row: &impl Fn(usize) -> &'a [f32],
    weights: &[f32],
    heads: usize,
    run: std::ops::Range<usize>,
) {
    let at = |h: usize| (first + h) * k + col;
    let mut sums = [[0.0f32; LANES]; H];
    for (h, sums) in sums.iter_mut().enumerate() {
        sums.copy_from_slice(&out[at(h)..][..LANES]);
    }
    for i in run {
        let row: &[f32; LANES] = row(i)[col..].first_chunk().expect("a row has the tile's columns");
        let weights = &weights[i * heads + first..][..H];
        for (sums, weight) in sums.iter_mut().zip(weights) {
            for lane in 0..LANES {
                sums[lane] += weight * row[lane];
            }
        }
    }
    for (h, sums) in sums.iter().enumerate() {
        out[at(h)..][..LANES].copy_from_slice(sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(len: usize, seed: u64) -> Vec<f32> {
        let key = gnarl_common::rng::Key::new(seed);
        (0..len as u64).map(|i| key.unit(i) as f32 - 0.5).collect()
    }

    fn assert_close(found: f32, expected: f64, terms: usize) {
        assert!(
            (f64::from(found) - expected).abs() < 1e-6 * (terms + 1) as f64,
            "{found} {expected}"
        );
    }

    #[test]
    fn dots_and_sums_are_those_of_loops() {
        for heads in [1, 3, 4, 5, 8] {
            for k in [0, 1, 15, 16, 17, 33] {
                for rows in [0, 1, 32, 33, 70] {
                    let data = values(rows * k, 1);
                    let row = |i: usize| &data[i * k..(i + 1) * k];
                    let vectors = values(heads * k, 2);
                    for i in 0..rows {
                        let mut found = vec![f32::NAN; heads];
                        dots(&mut found, row(i), &vectors);
                        for (h, found) in found.into_iter().enumerate() {
                            let vector = &vectors[h * k..(h + 1) * k];
                            let terms = row(i).iter().zip(vector);
                            let sum = terms.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                            assert_close(found, sum, k);
                        }
                    }
                    let weights = values(rows * heads, 3);
                    let before = values(heads * k, 4);
                    let mut found = before.clone();
                    add_rows(&mut found, k, row, &weights);
                    for (at, found) in found.into_iter().enumerate() {
                        let h = at / k;
                        let col = at % k;
                        let term = |i| f64::from(weights[i * heads + h]) * f64::from(row(i)[col]);
                        let sum = f64::from(before[at]) + (0..rows).map(term).sum::<f64>();
                        assert_close(found, sum, rows);
                    }
                }
            }
        }
    }
}
