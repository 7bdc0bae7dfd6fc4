//! Seeds of heterogeneous graphs at their own times, or at given ones.

use std::borrow::Cow;
#[cfg(feature = "serve")]
use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Buf, Error, Result};
use gnarl_graph::Dataset;
use gnarl_graph::blocks::Schema;
use gnarl_graph::times::node_times;
#[cfg(feature = "serve")]
use gnarl_sample::EdgeServices;
#[cfg(feature = "serve")]
use gnarl_sample::parts::Routes;
use gnarl_sample::{
    HeteroBatch, HeteroFanouts, HeteroSampleGraph, HeteroScratch, HeteroTemporalPartsSampler,
    HeteroTemporalSampler, TemporalDraw,
};

use super::times::needed;

/// A sampler of neighborhoods as of times.
#[derive(Clone)]
pub(crate) struct TimedSeeds {
    sampler: Drawn,
    own: OwnTimes,
}

/// Where neighbors are drawn from.
#[derive(Clone)]
enum Drawn {
    Whole(HeteroTemporalSampler),
    #[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "parts need clients of servers"))]
    Parts(HeteroTemporalPartsSampler),
}

/// Times of seeds that come without.
#[derive(Clone)]
pub(crate) enum OwnTimes {
    /// Those of the nodes of each type that has any.
    OfNodes(Vec<Option<Buf<i64>>>),
    /// After all edges.
    End,
}

impl TimedSeeds {
    /// A sampler of one hop over `graph`, the lists of `dataset`.
    ///
    /// # Errors
    /// If no edge type has times, or they do not fit.
    pub fn open(dataset: &Dataset, graph: HeteroSampleGraph, draw: TemporalDraw) -> Result<Self> {
        let graph = graph.with_times_of(dataset)?;
        let names = graph.schema().node_types().iter();
        let times = names.map(|name| node_times(dataset, name)).collect::<Result<_>>()?;
        Ok(Self { own: OwnTimes::OfNodes(times), ..Self::at_end(&graph, draw)? })
    }

    /// A sampler of one hop over `graph`, which has times, for seeds that come with theirs; those that do not are later
    /// than all edges.
    ///
    /// # Errors
    /// If no edge type has times.
    pub fn at_end(graph: &HeteroSampleGraph, draw: TemporalDraw) -> Result<Self> {
        let sampler = HeteroTemporalSampler::new(graph, &HeteroFanouts::new(&[-1]), draw)?;
        Ok(Self { sampler: Drawn::Whole(sampler), own: OwnTimes::End })
    }

    /// A sampler of one hop over parts, which takes the times of seeds that come without from `own`.
    ///
    /// # Errors
    /// As [`HeteroTemporalPartsSampler::new`].
    #[cfg(feature = "serve")]
    pub fn of_parts(
        schema: Arc<Schema>,
        draw: TemporalDraw,
        (routes, edges): (Vec<Routes>, Vec<EdgeServices>),
        own: OwnTimes,
    ) -> Result<Self> {
        let of = (draw, &HeteroFanouts::new(&[-1]));
        let sampler = HeteroTemporalPartsSampler::new(schema, of, routes, edges)?;
        Ok(Self { sampler: Drawn::Parts(sampler), own })
    }

    /// The same sampler with other fan-outs.
    ///
    /// # Errors
    /// If fan-outs are wrong.
    pub fn with_fanouts(&self, fanouts: &HeteroFanouts) -> Result<Self> {
        let sampler = match &self.sampler {
            Drawn::Whole(sampler) => Drawn::Whole(sampler.with_fanouts(fanouts)?),
            Drawn::Parts(sampler) => Drawn::Parts(sampler.with_fanouts(fanouts)?),
        };
        Ok(Self { sampler, own: self.own.clone() })
    }

    fn schema(&self) -> &Schema {
        match &self.sampler {
            Drawn::Whole(sampler) => sampler.schema(),
            Drawn::Parts(sampler) => sampler.schema(),
        }
    }

    /// The seeds of every batch of an epoch.
    pub fn epoch(&self, train: &[u32], batch_size: usize, key: Key) -> Vec<Vec<u32>> {
        match &self.sampler {
            Drawn::Whole(sampler) => sampler.epoch(train, batch_size, key),
            Drawn::Parts(sampler) => sampler.epoch(train, batch_size, key),
        }
    }

    /// The batch for seeds of several node types at `times`, or at their own.
    ///
    /// # Errors
    /// If a seed has no time, or those of the sampler.
    pub fn sample(
        &self,
        seeds: &[(usize, &[u32])],
        times: &[Vec<i64>],
        key: Key,
        scratch: &mut HeteroScratch,
    ) -> Result<HeteroBatch> {
        let times = self.own.or(times, seeds, self.schema())?;
        let seeds = seeds.iter().zip(&*times).map(|(&(of, nodes), times)| (of, nodes, &**times));
        let seeds: Vec<_> = seeds.collect();
        match &self.sampler {
            Drawn::Whole(sampler) => Ok(sampler.sample_at(&seeds, key, scratch)?.batch),
            Drawn::Parts(sampler) => sampler.sample_at(&seeds, key, scratch),
        }
    }
}

impl OwnTimes {
    /// The `times` of seeds of several node types, or their own if there are none.
    fn or<'t>(
        &self,
        times: &'t [Vec<i64>],
        seeds: &[(usize, &[u32])],
        schema: &Schema,
    ) -> Result<Cow<'t, [Vec<i64>]>> {
        if !times.is_empty() {
            return Ok(times.into());
        }
        let of_nodes = match self {
            Self::OfNodes(times) => times,
            Self::End => {
                let end = seeds.iter().map(|(_, nodes)| vec![i64::MAX; nodes.len()]);
                return Ok(end.collect());
            }
        };
        let of_type = |&(of, nodes): &(usize, &[u32])| -> Result<Vec<i64>> {
            let name = format!("nodes of type '{}'", schema.node_types()[of]);
            let all = needed(of_nodes[of].as_ref(), &name)?;
            let time = |&node: &u32| {
                all.get(node as usize)
                    .copied()
                    .ok_or_else(|| Error::invalid(format!("node {node} of {name} has no time")))
            };
            nodes.iter().map(time).collect()
        };
        seeds.iter().map(of_type).collect()
    }
}
