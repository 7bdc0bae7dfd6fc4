//! Weighted sampling without replacement (Efraimidis and Spirakis, Information Processing Letters
//! 2006: A-ES), consistent over the parts of a vertex cut (GLISP, section III-C).

use gnarl_common::Result;
use gnarl_common::rng::Key;

use crate::bottom_k::{Numbers, Smallest, with_spare};
use crate::hash::Hash;
use crate::lanes::{LANES, Lanes};
use crate::neighbors::{Draw, NeighborSampler};
use crate::view::View;

/// For every node at every hop, in-neighbors without replacement, one after the other with
/// probabilities in proportion to the weights of their edges.
///
/// Each edge has an exponential waiting time whose rate is its weight; the first ones are the
/// sample. The times depend on the key, the dataset ids of both endpoints and the weight, so that
/// the candidates of the parts of a vertex cut merge to the sample of the whole graph. An edge
/// whose weight is 0 or NaN is taken only where the others are fewer than the fan-out. Time is
/// proportional to the degrees.
///
/// Equal edges are drawn independently; a vertex cut must keep them in one part.
pub type WeightedSampler = NeighborSampler<Weighted>;

/// One waiting time per edge.
#[derive(Debug, Clone, Copy)]
pub struct Weighted;

impl Draw for Weighted {
    const NAME: &str = "weighted";
    type Chooser = Smallest<ByWeight>;

    fn chooser(view: View<'_>, key: Key) -> Result<Self::Chooser> {
        view.needed_weights()?;
        Ok(Smallest::new(ByWeight { key, hash: Hash::new(key) }))
    }
}

pub struct ByWeight {
    key: Key,
    hash: Hash,
}

/// Units in the last place by which a time's limit is raised before it is compared with the bound
/// of a time: more than the rounding errors of both.
const SLACK: u32 = 16;

impl Numbers for ByWeight {
    fn turn_to(&mut self, node: u64) {
        self.hash = Hash::new(self.key.with(node));
    }

    #[inline(always)]
    fn announce(&self, view: View<'_>, (start, degree): (usize, u32)) {
        if let Some(weights) = view.aligned_weights() {
            weights.prefetch(start, degree as usize);
        }
    }

    /// As `-ln(u) >= 1 - u`, a time is at least `(1 - u) / weight`: most edges of a long list are
    /// beyond the limit by that alone, and need neither a logarithm nor a division.
    #[inline(always)]
    fn fill(
        &self,
        view: View<'_>,
        list: (usize, u32),
        from: usize,
        limit: u32,
        numbers: &mut [u32; LANES],
    ) -> Lanes {
        self.hash.all_edges(view, list, from, numbers);
        let left = LANES.min(list.1 as usize - from);
        let Some(weights) = view.weights else { return Lanes::NONE };
        let weights = view.weights_from(weights, list.0 + from, left);
        // NaN where there is no limit, so that no comparison holds.
        let limit_2_24 = f32::from_bits(limit.saturating_add(SLACK)) * 16_777_216.0;
        let beyond = Lanes::that(|i| least_2_24(numbers[i]) > limit_2_24 * weights[i]);
        let perhaps = Lanes::first(left).without(beyond);
        if perhaps.are_few() {
            return perhaps.that_are(|lane| {
                numbers[lane] = waiting_time(numbers[lane], weights[lane]).to_bits();
                numbers[lane] <= limit
            });
        }
        let both = numbers.chunks_exact_mut(8).zip(weights.chunks_exact(8));
        for (numbers, weights) in both.take(left.div_ceil(8)) {
            for (number, &weight) in numbers.iter_mut().zip(weights) {
                *number = waiting_time(*number, weight).to_bits();
            }
        }
        Lanes::at_most(limit, numbers).and(perhaps)
    }

    /// Of times whose rates are small, as many as `limit` times the sum of the rates are below
    /// `limit`; where they are larger, fewer by the share that their mean leaves.
    #[inline(always)]
    fn likely_limit(&self, view: View<'_>, (start, degree): (usize, u32), wanted: usize) -> u32 {
        let share = with_spare(wanted) / f64::from(degree);
        let Some(weights) = view.aligned_weights().filter(|_| share < 0.5) else {
            return u32::MAX;
        };
        let total = weights.sum(start, degree as usize);
        let mean = f64::from(total) / f64::from(degree);
        let limit = (-(-share).ln_1p() / mean) as f32;
        if limit > 0.0 && limit.is_finite() { limit.to_bits() } else { u32::MAX }
    }
}

/// 2^24 times the lower bound of `1 - u`, for the `u` in (0, 1) that `number` stands for; exact.
#[inline(always)]
fn least_2_24(number: u32) -> f32 {
    (!number >> 8) as i32 as f32
}

/// `-ln(u) / weight` for the `u` in (0, 1) that `number` stands for; never negative, so that its bits
/// are in the same order.
///
/// The logarithm is our own so that machines agree on its bits: a series in `(m - 1) / (m + 1)`, exact
/// to 1e-9, for the mantissa `m` between √½ and √2.
#[inline(always)]
fn waiting_time(number: u32, weight: f32) -> f32 {
    const HALF_SQRT: u64 = 0x3fe6_a09e_667f_3bcd;
    let u = (f64::from(number) + 0.5) * (1.0 / 4_294_967_296.0);
    let shifted = u.to_bits().wrapping_sub(HALF_SQRT);
    let exponent = (shifted as i64 >> 52) as i32;
    let m = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff).wrapping_add(HALF_SQRT));
    let s = (m - 1.0) / (m + 1.0);
    let q = s * s;
    let series =
        2.0 + q * (2.0 / 3.0 + q * (0.4 + q * (2.0 / 7.0 + q * (2.0 / 9.0 + q * (2.0 / 11.0)))));
    let ln = s * series + f64::from(exponent) * std::f64::consts::LN_2;
    let time = (-ln / f64::from(weight)) as f32;
    if weight > 0.0 { time } else { f32::INFINITY }
}

#[cfg(test)]
mod tests;
