//! `degree`: nodes by their degree, since frequent ones are harder negatives (Mikolov et al., NIPS
//! 2013, for words).

use gnarl_common::rng::Key;
use gnarl_graph::triples::Side;

use super::{Drawn, NegativeSampler, Positives};

/// Nodes drawn in proportion to a power of their degree, with repetition, `count` for a batch.
pub struct ByDegree {
    /// Cumulative sums of the weights.
    sums: Vec<f64>,
    count: usize,
}

impl ByDegree {
    /// Draws `count` nodes in proportion to `degreeᵉ`; nodes of degree 0 are never drawn, unless all are.
    pub fn new(degrees: &[u32], exponent: f64, count: usize) -> Self {
        let none = degrees.iter().all(|&degree| degree == 0);
        let weight = |degree: u32| match degree {
            0 => f64::from(u8::from(none)),
            degree => f64::from(degree).powf(exponent),
        };
        let mut sum = 0.0;
        let add = |&degree: &u32| {
            sum += weight(degree);
            sum
        };
        Self { sums: degrees.iter().map(add).collect(), count }
    }

    fn node(&self, unit: f64) -> u32 {
        let total = self.sums.last().copied().unwrap_or(0.0);
        let place = self.sums.partition_point(|&sum| sum <= unit * total);
        place.min(self.sums.len().saturating_sub(1)) as u32
    }
}

impl NegativeSampler for ByDegree {
    fn name(&self) -> &'static str {
        "degree"
    }

    fn choose(&self, batch: &Positives<'_>, _: Side, key: Key) -> Drawn {
        let ids = (0..self.count as u64).map(|i| self.node(key.unit(i)));
        Drawn::shared(ids.collect(), batch.share.len())
    }
}
