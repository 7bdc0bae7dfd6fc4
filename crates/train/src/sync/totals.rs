//! The loss and the weight of a step, carried through the all-reduce of its gradients.

use crate::step::BatchLoss;

/// Number of values behind the gradients.
pub(super) const PLACES: usize = 3;

/// A weight is split into multiples of this unit and a remainder: sums of either are whole numbers
/// that 32 bits represent exactly up to 2²⁴, so that weights are exact up to 2³⁶.
const UNIT: f64 = 4096.0;

/// Adds the totals of a batch to those of its step.
pub(super) fn add(totals: &mut [f32], loss: BatchLoss) {
    let units = (loss.weight / UNIT).floor();
    totals[0] += loss.sum as f32;
    totals[1] += units as f32;
    totals[2] += (loss.weight - units * UNIT) as f32;
}

/// The weight of the step.
pub(super) fn weight(totals: &[f32]) -> f64 {
    f64::from(totals[1]) * UNIT + f64::from(totals[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_above_the_range_of_32_bits_are_exact() {
        let batches = [16_777_217.0, 1.0, 100_000_001.0, 3.0];
        let mut totals = [0.0; PLACES];
        for weight in batches {
            add(&mut totals, BatchLoss { sum: 0.5, weight });
        }
        assert_eq!(weight(&totals), batches.iter().sum::<f64>());
        // One 32-bit sum loses some of them.
        let rounded: f32 = batches.iter().map(|&weight| weight as f32).sum();
        assert_ne!(f64::from(rounded), batches.iter().sum::<f64>());
    }
}
