//! Counter-based random numbers: a value is a pure function of its key, never of the order of
//! calls. Sampling, dropout, initialization and generators all draw from here, so their results
//! do not depend on threads, workers or partitions.

/// Mixes one 64-bit word (the finalizer of SplitMix64, Steele et al., OOPSLA 2014).
#[inline(always)]
pub const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A point in the space of random streams. Derive narrower keys with [`Key::with`], then read
/// numbers by counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// The root key of a run.
    #[inline]
    pub const fn new(seed: u64) -> Self {
        Self(mix(seed.wrapping_add(GOLDEN)))
    }

    /// The key of a sub-stream: an epoch, a layer, a node.
    #[inline(always)]
    pub const fn with(self, word: u64) -> Self {
        Self(mix(self.0 ^ mix(word.wrapping_add(GOLDEN))))
    }

    /// The key whose [`Key::bits`] are `bits`, as another process sent them.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The raw key, for kernels that run their own generator from it.
    #[inline(always)]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The `counter`-th 64 random bits of this stream.
    #[inline(always)]
    pub const fn u64(self, counter: u64) -> u64 {
        mix(self.0.wrapping_add(counter.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// Uniform in `0..n` without a division; the bias is below `n / 2^64`. `n` must not be 0.
    #[inline(always)]
    pub const fn below(self, counter: u64, n: u64) -> u64 {
        ((self.u64(counter) as u128 * n as u128) >> 64) as u64
    }

    /// Uniform in `[0, 1)` with 53 bits.
    #[inline(always)]
    pub const fn unit(self, counter: u64) -> f64 {
        (self.u64(counter) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Standard normal by Box–Muller; consumes the counters `2c` and `2c + 1`.
    pub fn normal(self, counter: u64) -> f64 {
        let u = 1.0 - self.unit(2 * counter);
        let v = self.unit(2 * counter + 1);
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// A permutation of `items` (Fisher–Yates).
    pub fn shuffle<T>(self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64, i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_depend_on_key_and_counter_only() {
        let a = Key::new(7).with(3).u64(9);
        assert_eq!(a, Key::new(7).with(3).u64(9));
        assert_ne!(a, Key::new(7).with(3).u64(10));
        assert_ne!(a, Key::new(7).with(4).u64(9));
        assert_ne!(a, Key::new(8).with(3).u64(9));
    }

    #[test]
    fn below_is_uniform_by_chi_square() {
        let (n, draws) = (10u64, 100_000u64);
        let mut counts = [0f64; 10];
        for c in 0..draws {
            counts[Key::new(1).with(c).below(0, n) as usize] += 1.0;
        }
        let expected = draws as f64 / n as f64;
        let chi: f64 = counts.iter().map(|c| (c - expected).powi(2) / expected).sum();
        assert!(chi < 27.9, "chi-square {chi} exceeds the 0.1 % point of 9 degrees of freedom");
    }

    #[test]
    fn shuffle_is_a_permutation() {
        let mut v: Vec<u32> = (0..1000).collect();
        Key::new(3).shuffle(&mut v);
        assert_ne!(v, (0..1000).collect::<Vec<_>>());
        v.sort_unstable();
        assert_eq!(v, (0..1000).collect::<Vec<_>>());
    }
}
