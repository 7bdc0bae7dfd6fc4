//! Predictions for `gradient`: batches of all ranks, and gradients summed at each step.

use gnarl_common::Result;
use gnarl_config::{RunConfig, Strategy};

use gnarl_partition::Within;

use super::facts::Facts;
use super::predict::Predict;
use super::sampled;
use super::work::Work;

/// Synchronous SGD over sampled neighbors.
pub(super) struct Gradient;

impl Predict for Gradient {
    fn strategy(&self) -> Strategy {
        Strategy::Gradient
    }

    fn check(&self, _: &Facts<'_>, config: &RunConfig) -> Result<()> {
        sampled::check(config)
    }

    /// Every rank samples its share of a step's seeds. A sum of gradients is two messages to each
    /// other rank. Features come from this machine's files, or, with `partition.servers`, from
    /// other machines as often as edges are cut.
    fn work(&self, facts: &Facts<'_>, config: &RunConfig) -> Result<Work> {
        let ranks = config.train.workers;
        let batches = facts.graph.batches(config, facts.counts.train, ranks, Within::ALL)?;
        let mut work = sampled::work(facts, config, &batches)?;
        let (steps, others) = (work.steps as f64, (ranks - 1) as f64);
        // A batch that never changes is sampled once.
        let all = config.hops().iter().all(|&fanout| fanout < 0);
        if all && config.sample.batch_size == 0 {
            (work.sampled_edges, work.fetched_bytes) = (0.0, 0.0);
        }
        // The batch's loss and weight are sent along.
        work.sent_bytes = steps * sampled::summed(facts.parameters(config)? + 2.0, ranks);
        work.messages = 2.0 * steps * others;
        sampled::exchange(facts, (config, ranks), &batches, &mut work);
        if config.partition.servers.is_some() {
            let cut = facts.cut(config)?;
            let rows = work.fetched_bytes * cut.edge_cut;
            work.sent_bytes += rows;
            work.messages += steps * others * (1 + batches.blocks.len()) as f64;
        }
        Ok(work)
    }
}
