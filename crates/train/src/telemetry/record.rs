//! What is recorded of each epoch.

use serde::{Deserialize, Serialize};

use crate::evaluation::Scores;
use crate::json;
use crate::telemetry::bottleneck::Verdict;
use crate::telemetry::load_balance::Balance;

/// One line of `metrics.jsonl`, which says the verdict too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// Counted from 1.
    pub epoch: usize,
    /// Mean training loss.
    pub loss: f64,
    /// Learning rate.
    pub lr: f32,
    /// Validation scores, if evaluated after this epoch.
    #[serde(default, deserialize_with = "json::floats", skip_serializing_if = "Scores::is_empty")]
    pub valid: Scores,
    /// Test scores, if evaluated after this epoch.
    #[serde(default, deserialize_with = "json::floats", skip_serializing_if = "Scores::is_empty")]
    pub test: Scores,
    /// Wall seconds, evaluation not included.
    pub seconds: f64,
    /// Where the time went, averaged over the workers.
    pub stages: Stages,
    /// Edges of all blocks, over all workers.
    pub sampled_edges: u64,
    /// Seeds, over all workers.
    pub seeds: u64,
    /// Share of the rows of other machines that a cache had, if rows come from other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_hit_rate: Option<f64>,
    /// Bytes of rows and columns that workers sent to each other, over all of them, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanged_bytes: Option<ExchangedBytes>,
    /// How evenly the workers worked, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<Balance>,
}

/// What exchanges of rows and columns took, evaluation not included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangedBytes {
    /// Of values.
    pub forward: u64,
    /// Of their gradients.
    pub backward: u64,
}

impl EpochRecord {
    /// What decided how long it took.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.stages, self.seconds)
    }
}

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

/// What a worker counted in an epoch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub loss: f64,
    pub weight: f64,
    pub edges: u64,
    pub seeds: u64,
    pub stages: Stages,
    /// Rows of other machines that a cache had, and had not; none if there are no other machines.
    pub cached: [u64; 2],
    /// Bytes of rows and columns sent to other ranks, forward and backward.
    pub exchanged: [u64; 2],
    /// What messages passed over: edges of batches, or columns of all edges.
    pub passed: u64,
    /// Seconds of processor time of the compute threads; 0 where the system does not tell.
    pub processor: f64,
}

/// A tally as the numbers that ranks tell each other.
pub(crate) type Figures = [f64; Tally::FIGURES];

impl Tally {
    /// How many there are.
    pub(crate) const FIGURES: usize = 10 + Stages::COUNT;

    /// What was counted since the tally was as `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let (mut spent, before_spent) = (self.stages.to_array(), before.stages.to_array());
        spent.iter_mut().zip(before_spent).for_each(|(spent, before)| *spent -= before);
        Self {
            loss: self.loss - before.loss,
            weight: self.weight - before.weight,
            edges: self.edges - before.edges,
            seeds: self.seeds - before.seeds,
            stages: Stages::from_array(spent),
            cached: [0, 1].map(|i| self.cached[i] - before.cached[i]),
            exchanged: [0, 1].map(|i| self.exchanged[i] - before.exchanged[i]),
            passed: self.passed - before.passed,
            processor: self.processor - before.processor,
        }
    }

    pub(crate) fn to_array(self) -> Figures {
        let mut all = [0.0; Self::FIGURES];
        all[..4].copy_from_slice(&[self.loss, self.weight, self.edges as f64, self.seeds as f64]);
        all[4..6].copy_from_slice(&self.cached.map(|rows| rows as f64));
        all[6..8].copy_from_slice(&self.exchanged.map(|bytes| bytes as f64));
        all[8..10].copy_from_slice(&[self.passed as f64, self.processor]);
        all[10..].copy_from_slice(&self.stages.to_array());
        all
    }

    /// A record of what all ranks counted, in their order.
    pub(crate) fn record(ranks: &[Figures], epoch: usize, lr: f32, seconds: f64) -> EpochRecord {
        let mut sums = [0.0; Self::FIGURES];
        for figures in ranks {
            sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
        }
        let mut stages = [0.0; Stages::COUNT];
        for (mean, sum) in stages.iter_mut().zip(&sums[10..]) {
            *mean = sum / ranks.len() as f64;
        }
        let exchanged = ExchangedBytes { forward: sums[6] as u64, backward: sums[7] as u64 };
        EpochRecord {
            epoch,
            loss: if sums[1] > 0.0 { sums[0] / sums[1] } else { 0.0 },
            lr,
            seconds,
            stages: Stages::from_array(stages),
            sampled_edges: sums[2] as u64,
            seeds: sums[3] as u64,
            cache_hit_rate: (sums[4] + sums[5] > 0.0).then(|| sums[4] / (sums[4] + sums[5])),
            exchanged_bytes: (exchanged != ExchangedBytes::default()).then_some(exchanged),
            balance: Balance::of(ranks),
            ..EpochRecord::default()
        }
    }
}
