//! The softmax of scores with an optional extra term.

use crate::kernel::math::exp;
use crate::kernel::multiversion;

/// Fills `shares` with `e^{s·xᵢ}` over their sum, to which `e^{first}` is added too, and returns
/// the logarithm of that sum. `first` is −∞ for no extra term.
pub(super) fn softmax(shares: &mut [f32], scores: &[f32], scale: f32, first: f32) -> f32 {
    let mut largest = first;
    for &score in scores {
        largest = largest.max(scale * score);
    }
    if largest == f32::NEG_INFINITY {
        shares.fill(0.0);
        return largest;
    }
    exponentials(shares, scores, scale, largest);
    let sum = shares.iter().map(|&e| f64::from(e)).sum::<f64>() + f64::from(first - largest).exp();
    let over = (1.0 / sum) as f32;
    shares.iter_mut().for_each(|share| *share *= over);
    largest + sum.ln() as f32
}

multiversion! {
    fn exponentials(out: &mut [f32], scores: &[f32], scale: f32, largest: f32) {
        for (out, score) in out.iter_mut().zip(scores) {
            *out = exp(scale * score - largest);
        }
    }
}
