//! Times of the pipeline's stages.

use serde::{Deserialize, Serialize};

/// Seconds spent in each stage. The first six run concurrently with the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stages {
    /// Scheduling batches.
    pub schedule: f64,
    /// Waiting for parts that are read into memory.
    pub load: f64,
    /// Sampling blocks.
    pub sample: f64,
    /// Gathering features.
    pub fetch: f64,
    /// Receiving batches that batch workers prepare, or that were prepared before the run.
    pub receive: f64,
    /// Preparing blocks for the backward pass.
    pub compact: f64,
    /// Waiting for a prepared batch.
    pub wait: f64,
    /// Forward, backward and update.
    pub compute: f64,
    /// Redistribution in forward and backward passes, waiting for other workers included.
    pub exchange: f64,
    /// Exchanging gradients or weights, waiting for other workers included.
    pub reduce: f64,
    /// Evaluation after the epoch.
    pub evaluate: f64,
}

impl Stages {
    /// Number of stages.
    pub const COUNT: usize = 11;
    /// Names of the stages, in the order of [`Stages::to_array`].
    pub const NAMES: [&str; Self::COUNT] = [
        "schedule", "load", "sample", "fetch", "receive", "compact", "wait", "compute", "exchange",
        "reduce", "evaluate",
    ];

    /// The stage with the largest share of an epoch, evaluation not included.
    pub fn bottleneck(&self) -> &'static str {
        let stages = [
            (self.wait, self.busiest_ahead()),
            (self.compute, "compute"),
            (self.exchange, "exchange"),
            (self.reduce, "reduce"),
        ];
        stages.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or("compute", |s| s.1)
    }

    /// The busiest stage ahead of compute.
    pub fn busiest_ahead(&self) -> &'static str {
        let stages = [
            (self.load, "load"),
            (self.receive, "receive"),
            (self.fetch, "fetch"),
            (self.sample + self.schedule + self.compact, "sample"),
        ];
        stages.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or("sample", |s| s.1)
    }

    /// The times as an array, for sums over ranks.
    pub fn to_array(self) -> [f64; Self::COUNT] {
        let Self {
            schedule,
            load,
            sample,
            fetch,
            receive,
            compact,
            wait,
            compute,
            exchange,
            reduce,
            evaluate,
        } = self;
        [schedule, load, sample, fetch, receive, compact, wait, compute, exchange, reduce, evaluate]
    }

    /// The inverse of [`Stages::to_array`].
    pub fn from_array(
        [
            schedule,
            load,
            sample,
            fetch,
            receive,
            compact,
            wait,
            compute,
            exchange,
            reduce,
            evaluate,
        ]: [f64; Self::COUNT],
    ) -> Self {
        Self {
            schedule,
            load,
            sample,
            fetch,
            receive,
            compact,
            wait,
            compute,
            exchange,
            reduce,
            evaluate,
        }
    }

    /// Adds the seconds of `other`.
    pub(crate) fn add(&mut self, other: Self) {
        let mut sums = self.to_array();
        sums.iter_mut().zip(other.to_array()).for_each(|(sum, more)| *sum += more);
        *self = Self::from_array(sums);
    }
}
