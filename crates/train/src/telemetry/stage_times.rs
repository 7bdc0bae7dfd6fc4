//! Seconds of the pipeline's stages.

use serde::{Deserialize, Serialize};

/// Seconds spent in each stage. The first four run beside the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stages {
    /// Choosing the seeds of batches.
    pub schedule: f64,
    /// Making blocks.
    pub sample: f64,
    /// Gathering feature rows.
    pub fetch: f64,
    /// Turning blocks for backward.
    pub compact: f64,
    /// Waiting for a prepared batch.
    pub wait: f64,
    /// Forward, backward and update.
    pub compute: f64,
    /// Exchanging rows and columns in forward and backward passes, waiting for other workers included.
    pub exchange: f64,
    /// Exchanging gradients or weights, waiting for other workers included.
    pub reduce: f64,
    /// Evaluation after the epoch.
    pub evaluate: f64,
}

impl Stages {
    /// How many there are.
    pub const COUNT: usize = 9;
    /// Their names, in the order of [`Stages::to_array`].
    pub const NAMES: [&str; Self::COUNT] = [
        "schedule", "sample", "fetch", "compact", "wait", "compute", "exchange", "reduce",
        "evaluate",
    ];

    /// The stage that decides how long an epoch takes, evaluation not included.
    pub fn bottleneck(&self) -> &'static str {
        let stages = [
            (self.wait, self.busiest_ahead()),
            (self.compute, "compute"),
            (self.exchange, "exchange"),
            (self.reduce, "reduce"),
        ];
        stages.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or("compute", |s| s.1)
    }

    /// The stage ahead of compute that works most.
    pub fn busiest_ahead(&self) -> &'static str {
        match self.sample + self.schedule + self.compact >= self.fetch {
            true => "sample",
            false => "fetch",
        }
    }

    /// The numbers, for adding up over ranks.
    pub fn to_array(self) -> [f64; Self::COUNT] {
        let Self { schedule, sample, fetch, compact, wait, compute, exchange, reduce, evaluate } =
            self;
        [schedule, sample, fetch, compact, wait, compute, exchange, reduce, evaluate]
    }

    /// The inverse of [`Stages::to_array`].
    pub fn from_array(
        [schedule, sample, fetch, compact, wait, compute, exchange, reduce, evaluate]: [f64;
            Self::COUNT],
    ) -> Self {
        Self { schedule, sample, fetch, compact, wait, compute, exchange, reduce, evaluate }
    }

    /// Adds the seconds of `other`.
    pub(crate) fn add(&mut self, other: Self) {
        let mut sums = self.to_array();
        sums.iter_mut().zip(other.to_array()).for_each(|(sum, more)| *sum += more);
        *self = Self::from_array(sums);
    }
}
