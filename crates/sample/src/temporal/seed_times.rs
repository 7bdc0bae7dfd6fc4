//! Times of seeds that come without.

use gnarl_common::{Buf, Error, Result};

/// Times of seeds that come without.
#[derive(Debug, Clone)]
pub enum SeedTimes {
    Unknown,
    OfNodes(Buf<i64>),
    /// After all edges.
    End,
}

impl SeedTimes {
    /// The times of `seeds`, local ids.
    ///
    /// # Errors
    /// If they are unknown, or a seed is no node.
    pub fn of(&self, seeds: &[u32]) -> Result<Vec<i64>> {
        match self {
            Self::End => Ok(vec![i64::MAX; seeds.len()]),
            Self::OfNodes(times) => {
                let time = |&seed: &u32| {
                    times
                        .get(seed as usize)
                        .copied()
                        .ok_or_else(|| Error::invalid(format!("seed {seed} has no time")))
                };
                seeds.iter().map(time).collect()
            }
            Self::Unknown => Err(Error::usage("the temporal sampler lacks the times of seeds")
                .hint("set them by with_seed_times, or pass times to sample_at")),
        }
    }
}
