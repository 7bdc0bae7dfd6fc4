//! Rules of temporal sampling.

use std::str::FromStr;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};

use super::by_time::Permitted;
use crate::draw::draw;

/// The sampling rule of nodes with more permitted in-neighbors than the fan-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemporalRule {
    /// The most recent ones; uniformly among those that tie for the last places.
    Recent,
    /// A uniform sample without replacement.
    Uniform,
}

/// Which edges are sampled, and by which random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemporalDraw {
    /// The edges to sample.
    pub rule: TemporalRule,
    /// True if each edge has a random number of its own, and the smallest are taken, as by
    /// [`ExactSampler`](crate::ExactSampler). Parts that share a list then find together what the whole graph draws;
    /// drawing reads all edges that chance decides about.
    pub exact: bool,
}

impl From<TemporalRule> for TemporalDraw {
    fn from(rule: TemporalRule) -> Self {
        Self { rule, exact: false }
    }
}

const RULES: [(TemporalRule, &str); 2] =
    [(TemporalRule::Recent, "recent"), (TemporalRule::Uniform, "uniform")];

impl FromStr for TemporalRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = RULES.iter().find(|(_, name)| *name == text);
        found.map(|(rule, _)| *rule).ok_or_else(|| {
            Error::usage(format!("unknown rule of temporal sampling '{text}'"))
                .hint("there are: recent, uniform")
        })
    }
}

impl TemporalRule {
    /// This rule, by a random number of each edge.
    pub fn exact(self) -> TemporalDraw {
        TemporalDraw { rule: self, exact: true }
    }

    /// Its name in requests.
    pub fn name(self) -> &'static str {
        RULES.iter().find(|(rule, _)| *rule == self).map_or("", |(_, name)| name)
    }

    /// Fills `out` with indices of `permitted` edges, ascending.
    pub(crate) fn choose(
        self,
        permitted: Permitted<'_>,
        key: Key,
        spare: &mut Vec<u32>,
        out: &mut [u32],
    ) {
        let later = permitted.len() - out.len();
        if later == 0 || out.is_empty() {
            (0..).zip(out).for_each(|(i, slot)| *slot = i);
            return;
        }
        // The edges before `from` are never taken, those from `to` on always, the rest by chance.
        let (from, to) = match self {
            Self::Uniform => (0, permitted.len()),
            Self::Recent => {
                let last = permitted.time(later);
                (permitted.before(last), permitted.up_to(last))
            }
        };
        let (some, all) = out.split_at_mut(out.len() - (permitted.len() - to));
        (to as u32..).zip(all).for_each(|(i, slot)| *slot = i);
        draw(key, (to - from) as u32, some, spare);
        some.sort_unstable();
        some.iter_mut().for_each(|i| *i += from as u32);
    }
}
