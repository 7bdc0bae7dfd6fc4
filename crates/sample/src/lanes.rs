//! Groups of edges that are compared together.

/// Number of edges compared together, so that the loops over them are free of branches.
pub const LANES: usize = 32;

/// A set of lanes, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes(u32);

impl Lanes {
    pub const NONE: Self = Self(0);

    /// The first `count` lanes, at least one and at most all.
    #[inline(always)]
    pub fn first(count: usize) -> Self {
        Self(u32::MAX >> (LANES - count))
    }

    /// The lanes of the edges `from..from + LANES` that lie in `list`.
    #[inline(always)]
    pub fn of_list((_, degree): (usize, u32), from: usize) -> Self {
        Self::first(LANES.min(degree as usize - from))
    }

    /// The lanes that satisfy `test`.
    #[inline(always)]
    pub fn that(test: impl Fn(usize) -> bool) -> Self {
        Self((0..LANES).fold(0, |bits, lane| bits | u32::from(test(lane)) << lane))
    }

    /// The lanes of `numbers` that are at most `limit`.
    #[inline(always)]
    pub fn at_most(limit: u32, numbers: &[u32; LANES]) -> Self {
        Self::that(|lane| numbers[lane] <= limit)
    }

    /// The intersection.
    #[inline(always)]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The difference.
    #[inline(always)]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The lanes of `self` that satisfy `test`, evaluated one after the other.
    #[inline(always)]
    pub fn that_are(self, mut test: impl FnMut(usize) -> bool) -> Self {
        Self(self.fold(0, |bits, lane| bits | u32::from(test(lane)) << lane))
    }

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub fn has(self, lane: usize) -> bool {
        self.0 >> lane & 1 == 1
    }

    #[inline(always)]
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns whether handling lanes one after the other takes less time than all together.
    #[inline(always)]
    pub fn are_few(self) -> bool {
        self.count() <= 6
    }
}

impl Iterator for Lanes {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let lane = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_sets() {
        let odd = Lanes::that(|lane| lane % 2 == 1);
        assert_eq!((odd.count(), odd.has(1), odd.has(2)), (16, true, false));
        assert!(odd.and(Lanes::first(6)).eq([1, 3, 5]));
        assert!(Lanes::first(6).without(odd).eq([0, 2, 4]));
        assert_eq!(Lanes::first(LANES).count(), LANES);
        let numbers = std::array::from_fn(|lane| lane as u32 * 10);
        assert_eq!(Lanes::at_most(20, &numbers), Lanes::first(3));
        assert!(odd.that_are(|lane| lane > 28).eq([29, 31]));
        assert!(odd.without(odd).is_empty() && odd.without(odd).next().is_none());
    }
}
