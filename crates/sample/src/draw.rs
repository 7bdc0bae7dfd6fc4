//! Draws without replacement in time proportional to their size.

use gnarl_common::rng::Key;

/// Size up to which a linear search finds moved values faster than a hash table.
const LINEAR: usize = 96;
const EMPTY: u32 = u32::MAX;

/// Fills `out` with distinct values below `n`, every sequence equally likely: the first steps of a
/// Fisher–Yates shuffle of `0..n` that is never materialized. `out.len() <= n`. `spare` is scratch
/// memory.
///
/// A shorter draw with the same key is a prefix of a longer one, so that a node met again at a
/// later hop with a smaller fan-out draws from the neighbors it has already.
#[inline]
pub(crate) fn draw(key: Key, n: u32, out: &mut [u32], spare: &mut Vec<u32>) {
    if out.len() > LINEAR {
        return draw_many(key, n, out, spare);
    }
    // Step i swaps the values at i and at moved[i].0; afterwards moved[i].1 is at moved[i].0.
    let mut moved = [(0u32, 0u32); LINEAR];
    // One bit for positions equal modulo 256: a clear bit proves that nothing was moved there.
    let mut filter = [0u64; 4];
    for i in 0..out.len() {
        let at = i as u32 + key.below(i as u64, u64::from(n - i as u32)) as u32;
        let value_at = |position: u32| {
            if filter[(position >> 6) as usize & 3] >> (position & 63) & 1 == 0 {
                return position;
            }
            let last = moved[..i].iter().rev().find(|m| m.0 == position);
            last.map_or(position, |m| m.1)
        };
        out[i] = value_at(at);
        moved[i] = (at, value_at(i as u32));
        filter[(at >> 6) as usize & 3] |= 1 << (at & 63);
    }
}

/// As [`draw`], with an open-addressing table of moved values.
fn draw_many(key: Key, n: u32, out: &mut [u32], spare: &mut Vec<u32>) {
    let size = (2 * out.len()).next_power_of_two();
    spare.clear();
    spare.resize(2 * size, EMPTY);
    let (positions, values) = spare.split_at_mut(size);
    let slot_of = |positions: &[u32], position: u32| {
        let mut slot = (position.wrapping_mul(0x9e37_79b1) as usize) & (size - 1);
        while positions[slot] != EMPTY && positions[slot] != position {
            slot = (slot + 1) & (size - 1);
        }
        slot
    };
    for (i, value) in out.iter_mut().enumerate() {
        let at = i as u32 + key.below(i as u64, u64::from(n - i as u32)) as u32;
        let here = slot_of(positions, i as u32);
        let own = if positions[here] == EMPTY { i as u32 } else { values[here] };
        let there = slot_of(positions, at);
        *value = if positions[there] == EMPTY { at } else { values[there] };
        positions[there] = at;
        values[there] = own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_draw_the_same_set() {
        for (n, k) in [(100, 96), (97, 96), (5000, 60), (200, 96)] {
            let (mut a, mut b, mut seen) = (vec![0; k], vec![0; k], Vec::new());
            draw(Key::new(5), n, &mut a, &mut seen);
            draw_many(Key::new(5), n, &mut b, &mut seen);
            assert_eq!(a, b);
        }
    }

    #[test]
    fn a_short_draw_is_a_prefix_of_a_long_one() {
        let (mut short, mut long, mut seen) = (vec![0; 10], vec![0; 15], Vec::new());
        for n in 15..200 {
            draw(Key::new(n.into()), n, &mut short, &mut seen);
            draw(Key::new(n.into()), n, &mut long, &mut seen);
            assert_eq!(short, long[..10]);
        }
    }

    #[test]
    fn values_are_distinct_and_in_range() {
        for (n, k) in [(1u32, 1usize), (7, 3), (64, 63), (1000, 500), (1_000_000, 1000)] {
            let (mut out, mut seen) = (vec![0; k], Vec::new());
            draw(Key::new(1).with(n.into()), n, &mut out, &mut seen);
            out.sort_unstable();
            assert!(out.windows(2).all(|w| w[0] < w[1]) && out[k - 1] < n);
        }
    }

    /// Each of the 10 pairs out of 5 has probability 1/10.
    #[test]
    fn sets_are_equally_likely() {
        let mut counts = [0f64; 32];
        let (draws, mut seen) = (50_000u64, Vec::new());
        for c in 0..draws {
            let mut out = [0; 2];
            draw(Key::new(9).with(c), 5, &mut out, &mut seen);
            counts[(1 << out[0] | 1 << out[1]) as usize] += 1.0;
        }
        let expected = draws as f64 / 10.0;
        let pairs: Vec<f64> = counts.into_iter().filter(|&c| c > 0.0).collect();
        let chi: f64 = pairs.iter().map(|c| (c - expected).powi(2) / expected).sum();
        assert_eq!(pairs.len(), 10);
        assert!(chi < 27.9, "chi-square {chi} exceeds the 0.1 % point of 9 degrees of freedom");
    }
}
