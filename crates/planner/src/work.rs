//! A rank's work in an epoch, and its time at given rates.

use gnarl_config::{Engine, Pipeline, PlanSection, RunConfig};
use serde::Serialize;

/// Number of accesses to a value that a layer computes, forward and backward.
pub(super) const TOUCHES: f64 = 4.0;
/// Values stored per weight: itself, its gradient, and two of the optimizer.
pub(super) const PER_WEIGHT: f64 = 4.0;

/// One rank's work in an epoch; where ranks differ that of the most loaded one. Evaluation is not
/// part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Work {
    /// Optimizer steps.
    pub steps: u64,
    /// Sampled edges.
    pub sampled_edges: f64,
    /// Floating-point operations of dense products, forward and backward.
    pub flops: f64,
    /// Non-zero values of sparse input rows in products.
    pub nonzeros: f64,
    /// Bytes of weights that they gather.
    pub weight_bytes: f64,
    /// Bytes that messages move over edges, a cache line at least for each.
    pub gathered_bytes: f64,
    /// Bytes read and written otherwise: fetching, dropout, activation, sums.
    pub streamed_bytes: f64,
    /// Bytes of features gathered for batches, ahead of compute.
    pub fetched_bytes: f64,
    /// Bytes sent to other ranks: feature slices, gradients or weights, remote features.
    pub sent_bytes: f64,
    /// Messages sent to other ranks.
    pub messages: f64,
    /// Bytes of parts read from disk.
    pub read_bytes: f64,
    /// Bytes moved to make lists of the parts in memory.
    pub merged_bytes: f64,
    /// Peak memory in bytes: the graph, inputs, activations, weights.
    pub memory_bytes: f64,
}

/// Time per kind of work in an epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Seconds {
    /// Sampling batches and fetching their features.
    pub sampling: f64,
    /// Products with weights.
    pub products: f64,
    /// Passing messages.
    pub messages: f64,
    /// Elementwise work on rows.
    pub rows: f64,
    /// Sending to other ranks.
    pub communication: f64,
    /// Overhead of steps.
    pub steps: f64,
    /// Making lists of the parts in memory.
    pub lists: f64,
    /// Reading parts from disk.
    pub reading: f64,
}

impl Seconds {
    /// The time of `work`, each kind as if it were alone.
    pub fn of(work: &Work, config: &RunConfig) -> Self {
        let (rates, threads) = (&config.plan, threads(config));
        Self {
            sampling: work.sampled_edges * rates.edge + work.fetched_bytes / rates.gather,
            // Transposing sparse rows for gradients is up to one thread; their weights fit into
            // caches.
            products: work.flops / rates.flops / threads
                + work.weight_bytes / rates.stream / threads
                + work.nonzeros * rates.nonzero / threads.min(1.0),
            messages: work.gathered_bytes / rates.gather / threads,
            rows: work.streamed_bytes / rates.stream / threads,
            communication: work.sent_bytes / rates.link + work.messages * rates.latency,
            steps: work.steps as f64 * rates.step,
            lists: work.merged_bytes / rates.gather,
            reading: work.read_bytes / rates.disk,
        }
    }

    /// Total time: sampling and making lists run concurrently with compute, on the same cores, and reading beside them.
    pub fn total(&self, config: &RunConfig) -> f64 {
        let computed = self.products + self.messages + self.rows;
        let local = match config.train.pipeline {
            Pipeline::Off => computed + self.sampling + self.lists / threads(config),
            _ => {
                let all = computed + (self.sampling + self.lists) / threads(config);
                all.max(self.sampling / preparation_threads(config))
            }
        };
        local.max(self.reading) + self.communication + self.steps
    }

    /// The kind with most of the time.
    pub fn dominant(&self) -> &'static str {
        let largest = self.named().into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        largest.map_or("", |(name, _)| name)
    }

    /// The kind that saves most time over `other`: its name, and the seconds here and there.
    pub fn saved(&self, other: &Self) -> (&'static str, f64, f64) {
        let both = self.named().into_iter().zip(other.named());
        let both = both.map(|((name, here), (_, there))| (name, here, there));
        both.max_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1))).unwrap_or_default()
    }

    fn named(&self) -> [(&'static str, f64); 8] {
        let Self { sampling, products, messages, rows, communication, steps, lists, reading } =
            *self;
        [
            ("sampling", sampling),
            ("products", products),
            ("passing messages", messages),
            ("going over rows", rows),
            ("communication", communication),
            ("the overhead of steps", steps),
            ("making lists", lists),
            ("reading parts", reading),
        ]
    }
}

/// Compute threads of a rank: ranks of one process share them, those of a group are assumed to have
/// a machine each. Less than one where ranks take turns.
pub(super) fn threads(config: &RunConfig) -> f64 {
    let PlanSection { threads, .. } = config.plan;
    let all = if config.train.threads == 0 { threads } else { config.train.threads } as f64;
    match config.train.engine {
        Engine::Local => all / config.train.workers as f64,
        Engine::Mpi => all,
    }
}

/// Batches of a rank that are sampled at once.
pub(super) fn preparation_threads(config: &RunConfig) -> f64 {
    config.preparation_threads(threads(config) as usize) as f64
}
