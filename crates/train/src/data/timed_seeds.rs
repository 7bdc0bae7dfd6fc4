//! Seeds of heterogeneous graphs at their own times.

use gnarl_common::rng::Key;
use gnarl_common::{Buf, Error, Result};
use gnarl_config::TimeRule;
use gnarl_graph::Dataset;
use gnarl_sample::{
    HeteroBatch, HeteroFanouts, HeteroSampleGraph, HeteroScratch, HeteroTemporalSampler, node_times,
};

use super::times::{needed, rule_of};

/// Seeds at their own times.
#[derive(Clone)]
pub(crate) struct TimedSeeds {
    sampler: HeteroTemporalSampler,
    /// Times of the nodes of each type that has any.
    times: Vec<Option<Buf<i64>>>,
}

impl TimedSeeds {
    /// A sampler of one hop over `graph`.
    ///
    /// # Errors
    /// If no edge type has times, or they do not fit.
    pub fn open(dataset: &Dataset, graph: HeteroSampleGraph, rule: TimeRule) -> Result<Self> {
        let graph = graph.with_times_of(dataset)?;
        let names = graph.schema().node_types().iter();
        let times = names.map(|name| node_times(dataset, name)).collect::<Result<_>>()?;
        let (fanouts, rule) = (HeteroFanouts::new(&[-1]), rule_of(rule));
        Ok(Self { sampler: HeteroTemporalSampler::new(&graph, &fanouts, rule)?, times })
    }

    /// These seeds with other fan-outs.
    ///
    /// # Errors
    /// If fan-outs are wrong.
    pub fn with_fanouts(&self, fanouts: &HeteroFanouts) -> Result<Self> {
        Ok(Self { sampler: self.sampler.with_fanouts(fanouts)?, times: self.times.clone() })
    }

    /// The seeds of every batch of an epoch.
    pub fn epoch(&self, train: &[u32], batch_size: usize, key: Key) -> Vec<Vec<u32>> {
        self.sampler.epoch(train, batch_size, key)
    }

    /// The batch for seeds of several node types at their times.
    ///
    /// # Errors
    /// If a seed has no time, or those of the sampler.
    pub fn sample(
        &self,
        seeds: &[(usize, &[u32])],
        key: Key,
        scratch: &mut HeteroScratch,
    ) -> Result<HeteroBatch> {
        let schema = self.sampler.schema();
        let mut times = Vec::with_capacity(seeds.len());
        for &(of, nodes) in seeds {
            let name = format!("nodes of type '{}'", schema.node_types()[of]);
            let all = needed(self.times[of].as_ref(), &name)?;
            let time = |&node: &u32| {
                all.get(node as usize)
                    .copied()
                    .ok_or_else(|| Error::invalid(format!("node {node} of {name} has no time")))
            };
            times.push(nodes.iter().map(time).collect::<Result<Vec<i64>>>()?);
        }
        let seeds = seeds.iter().zip(&times).map(|(&(of, nodes), times)| (of, nodes, &**times));
        let batch = self.sampler.sample_at(&seeds.collect::<Vec<_>>(), key, scratch)?;
        Ok(batch.batch)
    }
}
