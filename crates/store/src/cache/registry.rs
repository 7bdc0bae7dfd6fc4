//! Policies by name.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use gnarl_common::did_you_mean::unknown;
use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

use super::clockpro::ClockPro;
use super::fifo::Fifo;
use super::fixed::Fixed;
use super::lru::Lru;
use super::{CachedRows, Policy, budget};
use crate::RowSource;

/// The cache policies, by their names in configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CachePolicy {
    /// Ids chosen beforehand, see [`scores`](super::scores); nothing is ever evicted.
    Fixed,
    /// First in, first out.
    Fifo,
    /// Least recently used.
    Lru,
    /// CLOCK-Pro (Jiang, Chen & Zhang, USENIX ATC 2005) close to S3-FIFO (Yang et al., SOSP 2023):
    /// rows used once do not displace those used again.
    ClockPro,
}

impl CachePolicy {
    /// All policies.
    pub const ALL: [Self; 4] = [Self::Fixed, Self::Fifo, Self::Lru, Self::ClockPro];

    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Fifo => "fifo",
            Self::Lru => "lru",
            Self::ClockPro => "clockpro",
        }
    }

    /// Number of rows of `width` values that fit in `bytes`, with the policy's bookkeeping.
    pub fn capacity(self, bytes: u64, width: usize) -> usize {
        let notes = match self {
            Self::Fixed => Fixed::bytes,
            Self::Fifo => Fifo::bytes,
            Self::Lru => Lru::bytes,
            Self::ClockPro => ClockPro::bytes,
        };
        budget::capacity(bytes, width, notes)
    }

    /// A cache of rows of `source` that takes at most `bytes`.
    ///
    /// `choose` is called for [`CachePolicy::Fixed`] alone, with the number of rows that fit; it
    /// returns the dataset ids to cache, the hottest first. Ids beyond that number are left out.
    ///
    /// # Errors
    /// Those of `choose`.
    pub fn build<S: RowSource>(
        self,
        source: S,
        bytes: u64,
        choose: impl FnOnce(usize) -> Result<Vec<u64>>,
    ) -> Result<CachedRows<S>> {
        let rows = self.capacity(bytes, source.width());
        let policy: Box<dyn Policy> = match (self, NonZeroUsize::new(rows)) {
            (_, None) => Box::new(Fixed::new(&[])),
            (Self::Fixed, Some(_)) => {
                let ids = choose(rows)?;
                Box::new(Fixed::new(&ids[..rows.min(ids.len())]))
            }
            (_, Some(rows)) => self.slots(rows),
        };
        Ok(CachedRows::new(source, policy))
    }

    /// Slots for keys, of rows or of more. Those of [`CachePolicy::Fixed`] stay empty.
    pub fn slots(self, slots: NonZeroUsize) -> Box<dyn Policy> {
        match self {
            Self::Fixed => Box::new(Fixed::new(&[])),
            Self::Fifo => Box::new(Fifo::new(slots)),
            Self::Lru => Box::new(Lru::new(slots)),
            Self::ClockPro => Box::new(ClockPro::new(slots)),
        }
    }
}

impl fmt::Display for CachePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CachePolicy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(policy) = Self::ALL.into_iter().find(|p| p.name() == text) {
            return Ok(policy);
        }
        Err(unknown("cache policy", text, &Self::ALL.map(Self::name)))
    }
}
