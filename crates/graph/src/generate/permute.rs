//! A keyed bijection on `0..n` in constant memory: scrambles ids, and assigns nodes to splits in
//! exact shares, without a table.

use gnarl_common::rng::Key;

const ROUNDS: usize = 4;

/// A pseudo-random permutation of `0..n`, computed value by value in either direction.
///
/// Rounds of `x ← (x ⊕ k)·m mod 2^b; x ← x ⊕ (x >> ⌈b/2⌉)` with odd `m` permute the smallest
/// power of two above `n`; values that leave `0..n` are permuted again until they return
/// (cycle walking, Black and Rogaway, CT-RSA 2002), fewer than two steps on average.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    rounds: [Round; ROUNDS],
}

#[derive(Debug, Clone, Copy)]
struct Round {
    xor: u64,
    multiplier: u64,
    inverse: u64,
}

impl Permutation {
    /// The permutation of `0..n` that `key` selects; `n` must not be 0.
    pub(crate) fn new(n: u64, key: Key) -> Self {
        let bits = (u64::BITS - (n - 1).leading_zeros()).max(1);
        let mask = u64::MAX >> (u64::BITS - bits);
        let round = |r: usize| {
            let multiplier = key.u64(2 * r as u64) | 1;
            Round {
                xor: key.u64(2 * r as u64 + 1) & mask,
                multiplier,
                inverse: inverse_of_odd(multiplier),
            }
        };
        Self { n, mask, shift: bits.div_ceil(2), rounds: std::array::from_fn(round) }
    }

    /// The image of `x`.
    #[inline]
    pub(crate) fn apply(&self, mut x: u64) -> u64 {
        loop {
            for r in &self.rounds {
                x = (x ^ r.xor).wrapping_mul(r.multiplier) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.n {
                return x;
            }
        }
    }

    /// The preimage of `y`.
    #[inline]
    pub(crate) fn invert(&self, mut y: u64) -> u64 {
        loop {
            for r in self.rounds.iter().rev() {
                // The shift is at least half the width, so this step undoes itself.
                y ^= y >> self.shift;
                y = (y.wrapping_mul(r.inverse) & self.mask) ^ r.xor;
            }
            if y < self.n {
                return y;
            }
        }
    }
}

/// The inverse of an odd number modulo 2^64, by Newton's iteration: each step doubles the number
/// of correct bits.
fn inverse_of_odd(m: u64) -> u64 {
    let mut x = m;
    for _ in 0..5 {
        x = x.wrapping_mul(2u64.wrapping_sub(m.wrapping_mul(x)));
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_permuted_and_inverted() {
        for n in (1..200).chain([1 << 12, (1 << 12) + 1, 5000]) {
            let p = Permutation::new(n, Key::new(n));
            let mut seen: Vec<u64> = (0..n).map(|x| p.apply(x)).collect();
            assert!((0..n).all(|x| p.invert(seen[x as usize]) == x), "n = {n}");
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..n), "n = {n}");
        }
    }

    #[test]
    fn wide_values_come_back() {
        let n = (1u64 << 40) + 12345;
        let p = Permutation::new(n, Key::new(9));
        for x in (0..n).step_by(1 << 31) {
            let y = p.apply(x);
            assert!(y < n && p.invert(y) == x);
        }
    }

    #[test]
    fn neighbors_are_spread() {
        let n = 1_000_003;
        let p = Permutation::new(n, Key::new(4));
        let low = (0..1000).filter(|&x| p.apply(x) < n / 2).count();
        assert!((420..580).contains(&low), "{low} of the first 1000 ids fell in the lower half");
    }
}
