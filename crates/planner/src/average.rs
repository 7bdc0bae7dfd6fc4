//! Predictions for `average`: parts train alone, and weights are averaged.

use gnarl_common::{Error, Result};
use gnarl_config::{Batch, RunConfig, Strategy};

use gnarl_partition::Within;

use super::facts::Facts;
use super::predict::Predict;
use super::sampled;
use super::work::Work;

/// Model averaging over parts.
pub(super) struct Average;

impl Predict for Average {
    fn strategy(&self) -> Strategy {
        Strategy::Average
    }

    fn check(&self, facts: &Facts<'_>, config: &RunConfig) -> Result<()> {
        sampled::check(config)?;
        match facts.cut(config)?.parts {
            1 => Err(Error::usage("model averaging requires a partitioned graph")
                .hint("set partition.parts, or partition.path")),
            _ => Ok(()),
        }
    }

    /// A rank trains its parts one after the other. Beyond the hops of halo nodes of a part,
    /// lists have only the edges inside the part.
    fn work(&self, facts: &Facts<'_>, config: &RunConfig) -> Result<Work> {
        let (ranks, cut) = (config.train.workers, facts.cut(config)?);
        let parts = cut.parts.div_ceil(ranks) as f64;
        let train = facts.counts.train.div_ceil(cut.parts as u64);
        let share = (cut.replication / cut.parts as f64).min(1.0);
        let mut config = config.clone();
        if config.average.batch == Batch::Global {
            config.sample.batch_size = config.sample.batch_size.div_ceil(cut.parts);
        }
        let config = &config;
        let mut batches =
            facts.graph.batches(config, train, 1, Within { nodes: share, neighbors: 1.0 })?;
        for (hop, block) in batches.blocks.iter_mut().rev().enumerate() {
            if hop >= config.halo_hops() {
                block.edges *= 1.0 - cut.edge_cut;
            }
        }
        let one = sampled::work(facts, config, &batches)?;
        let syncs = 1.0 / config.train.sync_every as f64;
        let moments = match config.average.moments {
            true => config.optimizer.build()?.moments(0).len(),
            false => 0,
        };
        let shared = facts.parameters(config)? * (1 + moments) as f64
            + facts.graph.embedding_values(&facts.model(config));
        Ok(Work {
            steps: one.steps * parts as u64,
            sampled_edges: parts * one.sampled_edges,
            fetched_bytes: parts * one.fetched_bytes,
            flops: parts * one.flops,
            nonzeros: parts * one.nonzeros,
            weight_bytes: parts * one.weight_bytes,
            gathered_bytes: parts * one.gathered_bytes,
            streamed_bytes: parts * one.streamed_bytes,
            sent_bytes: syncs * sampled::summed(shared, ranks),
            messages: syncs * 2.0 * (ranks - 1) as f64,
            memory_bytes: one.memory_bytes,
            ..Work::default()
        })
    }
}
