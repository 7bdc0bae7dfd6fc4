//! Temporal neighbor sampling: only edges no later than the seed, as in TGAT (Xu et al., ICLR
//! 2020, section 3.2) and TGN (Rossi et al., 2020, section 3.1).

mod by_time;
mod hop;
mod numbered;
mod pairs;
mod rule;
mod sampler;
mod seed_times;

pub(crate) use by_time::ByTime;
pub(crate) use hop::{TimedHop, TimedLists};
pub(crate) use pairs::Pairs;
pub use rule::{TemporalDraw, TemporalRule};
pub use sampler::{TemporalBatch, TemporalSampler};
pub(crate) use seed_times::SeedTimes;
