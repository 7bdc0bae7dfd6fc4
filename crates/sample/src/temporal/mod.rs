//! Temporal neighbor sampling: only edges no later than the seed, as in TGAT (Xu et al., ICLR
//! 2020, section 3.2) and TGN (Rossi et al., 2020, section 3.1).

mod by_time;
mod column;
mod pairs;
mod sampler;

pub(crate) use column::edge_times;
pub(crate) use pairs::Pairs;
pub use sampler::{TemporalBatch, TemporalRule, TemporalSampler};
