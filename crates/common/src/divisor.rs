//! Division by the same number many times.

/// A divisor of 32-bit numbers: two multiplications in place of a division, whose quotient is exact (Lemire, Kaser and Kurz,
/// *Faster remainder by direct computation*, 2019).
///
/// ```
/// use gnarl_common::Divisor;
///
/// let by = Divisor::new(250_000);
/// assert_eq!(by.divide(1_000_001), (4, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Divisor {
    divisor: u32,
    /// 2⁶⁴ / divisor, rounded up; 0 for 1.
    inverse: u64,
}

impl Divisor {
    /// The divisor `divisor`.
    ///
    /// # Panics
    /// If it is 0.
    pub fn new(divisor: u32) -> Self {
        assert!(divisor > 0, "division by zero");
        Self { divisor, inverse: (u64::MAX / u64::from(divisor)).wrapping_add(1) }
    }

    /// The divisor itself.
    pub fn get(self) -> u32 {
        self.divisor
    }

    /// `number` divided, without the remainder.
    #[inline(always)]
    pub fn quotient(self, number: u32) -> u32 {
        if self.divisor == 1 {
            return number;
        }
        ((u128::from(self.inverse) * u128::from(number)) >> 64) as u32
    }

    /// The quotient and the remainder of `number`.
    #[inline(always)]
    pub fn divide(self, number: u32) -> (u32, u32) {
        let quotient = self.quotient(number);
        (quotient, number - quotient * self.divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Key;

    #[test]
    fn quotients_are_exact() {
        let key = Key::new(5);
        let edges = [1, 2, 3, 5, 7, 641, 65_535, 65_536, 1 << 31, u32::MAX - 1, u32::MAX];
        let drawn = (0..2000).map(|i| key.u64(i) as u32 >> (i % 31));
        let numbers: Vec<u32> = edges.into_iter().chain(drawn).collect();
        for &divisor in numbers.iter().filter(|&&divisor| divisor > 0).take(300) {
            let by = Divisor::new(divisor);
            let around =
                [divisor - 1, divisor, divisor.wrapping_mul(3), divisor.wrapping_mul(3) - 1];
            for number in numbers.iter().copied().chain(around).chain([0]) {
                assert_eq!(by.divide(number), (number / divisor, number % divisor));
            }
        }
    }
}
