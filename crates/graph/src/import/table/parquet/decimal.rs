//! Decimals as numbers.
//!
//! A decimal is an integer and a scale, the number of its digits behind the point. Dividing by a power
//! of ten rounds twice where either is no `f64`; reading the decimal's text rounds once, whatever its
//! scale.

use std::fmt::Write;

/// Bytes of the widest decimals, of 76 digits.
const MOST_BYTES: usize = 32;

const LOW_BITS: u128 = u64::MAX as u128;

/// Reads decimals of one scale.
pub(super) struct Decimals {
    scale: i64,
    text: String,
}

impl Decimals {
    pub fn new(scale: i32) -> Self {
        Self { scale: scale.into(), text: String::new() }
    }

    /// The number of an integer.
    pub fn integer(&mut self, value: i64) -> f64 {
        self.text.clear();
        let _ = write!(self.text, "{value}");
        self.scaled()
    }

    /// The number of an integer in two's complement, the highest byte first, unless it is wider than any
    /// decimal or has no bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> Option<f64> {
        let negative = *bytes.first()? >= 0x80;
        let mut wide = [if negative { 0xff } else { 0 }; MOST_BYTES];
        let start = MOST_BYTES.checked_sub(bytes.len())?;
        wide[start..].copy_from_slice(bytes);
        self.text.clear();
        let halves: [[u8; 16]; 2] = bytemuck::cast(wide);
        let [high, low] = halves.map(u128::from_be_bytes);
        if high as i128 == (low as i128) >> 127 {
            let _ = write!(self.text, "{}", low as i128);
        } else {
            self.write_wide(high, low);
        }
        Some(self.scaled())
    }

    /// Writes the integer of which these are the upper and lower 128 bits.
    fn write_wide(&mut self, mut high: u128, mut low: u128) {
        // The largest power of ten of which a remainder leaves room for 64 more bits.
        const STEP: u128 = 10_000_000_000_000_000_000;
        if (high as i128) < 0 {
            self.text.push('-');
            let carry;
            (low, carry) = (!low).overflowing_add(1);
            high = (!high).wrapping_add(carry.into());
        }
        let mut quarters = [high >> 64, high & LOW_BITS, low >> 64, low & LOW_BITS];
        let mut groups = Vec::with_capacity(5);
        while quarters != [0; 4] {
            let mut rest = 0;
            for quarter in &mut quarters {
                let value = rest << 64 | *quarter;
                *quarter = value / STEP;
                rest = value % STEP;
            }
            groups.push(rest);
        }
        for group in groups.iter().rev() {
            let _ = write!(self.text, "{group:019}");
        }
    }

    /// The number that the text of an integer stands for.
    fn scaled(&mut self) -> f64 {
        let _ = write!(self.text, "e{}", -self.scale);
        self.text.parse().expect("an integer with an exponent")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_decimals_round_once() {
        let mut decimals = Decimals::new(2);
        assert_eq!(decimals.integer(-1), -0.01);
        assert_eq!(decimals.bytes(&[0xff]), Some(-0.01));
        assert_eq!(decimals.bytes(&[0x30, 0x39]), Some(123.45));
        assert_eq!(decimals.bytes(&i128::MIN.to_be_bytes()), Some(-1.7014118346046923e36));
        // 10^75 and its negative, which take 250 bits.
        let mut wide = [0; 32];
        wide[31] = 1;
        for _ in 0..75 {
            multiply(&mut wide, 10, 0);
        }
        assert_eq!(decimals.bytes(&wide), Some(1e73));
        let mut negative = wide.map(|byte| !byte);
        multiply(&mut negative, 1, 1);
        assert_eq!(decimals.bytes(&negative), Some(-1e73));
        assert_eq!(Decimals::new(75).bytes(&wide), Some(1.0));
        assert_eq!([decimals.bytes(&[]), decimals.bytes(&[0; 33])], [None; 2]);
    }

    /// Replaces an integer by `factor` of it and `more`.
    fn multiply(bytes: &mut [u8; 32], factor: u32, more: u32) {
        let mut carry = more;
        for byte in bytes.iter_mut().rev() {
            carry += u32::from(*byte) * factor;
            *byte = carry as u8;
            carry >>= 8;
        }
    }
}
