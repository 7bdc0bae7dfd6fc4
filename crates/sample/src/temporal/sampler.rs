//! The temporal sampler.

use gnarl_common::rng::Key;
use gnarl_common::{Buf, Context, Result};
use gnarl_graph::blocks::{MiniBatch, NodeInfo};

use super::by_time::ByTime;
use super::hop::TimedLists;
use super::pairs::Pairs;
use super::rule::{TemporalDraw, TemporalRule};
use super::seed_times::SeedTimes;
use crate::graph::same_length;
use crate::neighbors::Fanouts;
use crate::scratch::assemble;
use crate::{SampleGraph, Sampler, Scratch};

/// For every node at every hop, in-neighbors by edges **no later than the node's time**: a seed's
/// own, or that of the seed through which the node was reached. An edge is there from its own time on, and from that of
/// its source, where these have times.
///
/// So one node of the graph is in a batch once per time at which it is reached. Its sample is
/// a pure function of the key, its dataset id, its time and the fan-out. A destination's edges
/// ascend by time. [`NodeInfo::degrees`] count the permitted edges, so that dividing by degrees
/// tells nothing of the future; in a part those of halo nodes count what the part has.
///
/// An edge at the very time of a seed is permitted: where seeds are themselves edges of the graph,
/// to be predicted, give them the time before.
///
/// Keeps eight bytes an edge, the order of each list by time (twelve if times span more than 32
/// bits); finding the permitted edges takes the logarithm of the degree.
#[derive(Debug, Clone)]
pub struct TemporalSampler {
    graph: SampleGraph,
    fanouts: Fanouts,
    draw: TemporalDraw,
    by_time: ByTime,
    seed_times: SeedTimes,
}

/// A temporal batch.
#[derive(Debug)]
pub struct TemporalBatch {
    /// The blocks. Input nodes may repeat, with different times.
    pub batch: MiniBatch,
    /// Time of each input node; the nodes of every later block are a prefix.
    pub times: Vec<i64>,
    /// For each block the time of each edge, in the order of
    /// [`Block::indices`](gnarl_graph::blocks::Block::indices).
    pub edge_times: Vec<Vec<i64>>,
}

impl TemporalSampler {
    /// A sampler of `graph`: at most `fanouts[0]` permitted in-neighbors of each seed,
    /// `fanouts[1]` of each node reached so far (seeds included), and so on; -1 takes all. Sorts
    /// all lists by time.
    ///
    /// # Errors
    /// If neither edges nor nodes have times, fan-outs are wrong, or a list is not inside the graph.
    pub fn new(
        graph: &SampleGraph,
        fanouts: &[i64],
        draw: impl Into<TemporalDraw>,
    ) -> Result<Self> {
        let by_time = ByTime::new(graph.view()).while_doing(|| "ordering edges by time")?;
        let (graph, fanouts) = (graph.clone(), Fanouts::new(fanouts)?);
        let (draw, seed_times) = (draw.into(), SeedTimes::Unknown);
        Ok(Self { graph, fanouts, draw, by_time, seed_times })
    }

    /// A sampler of these lists, already sorted, with other fan-outs.
    ///
    /// # Errors
    /// If fan-outs are wrong.
    pub fn with_fanouts(&self, fanouts: &[i64]) -> Result<Self> {
        Ok(Self { fanouts: Fanouts::new(fanouts)?, ..self.clone() })
    }

    /// Sets the time of each local node as a seed of [`Sampler::sample`].
    ///
    /// # Errors
    /// If there are more or fewer times than nodes.
    pub fn with_seed_times(mut self, times: Buf<i64>) -> Result<Self> {
        same_length("seed times", Some(times.len()), self.graph.num_nodes())?;
        self.seed_times = SeedTimes::OfNodes(times);
        Ok(self)
    }

    /// Sets the time of all seeds of [`Sampler::sample`] after that of any edge.
    pub fn with_seeds_at_end(mut self) -> Self {
        self.seed_times = SeedTimes::End;
        self
    }

    /// The batch for `seeds`, local ids of core nodes, at `times`. Seeds that agree in both share a
    /// row.
    ///
    /// # Errors
    /// As [`Sampler::sample`], or if there are not as many times as seeds.
    pub fn sample_at(
        &self,
        seeds: &[u32],
        times: &[i64],
        key: Key,
        scratch: &mut Scratch,
    ) -> Result<TemporalBatch> {
        self.graph.check_seeds(seeds)?;
        let Scratch { pairs, seen, .. } = scratch;
        pairs.clear();
        let targets = pairs.insert_seeds(seeds, times)?;
        let (mut hops, mut edge_times) = (Vec::new(), Vec::new());
        for &fanout in self.fanouts.iter() {
            let reached = (&*pairs.nodes.clone(), &*pairs.times.clone());
            let found = self.lists().hop(reached, fanout, key, pairs, seen)?;
            hops.push(found.hop);
            edge_times.push(found.times);
        }
        edge_times.reverse();
        let batch = assemble(pairs.nodes.clone(), self.node_info(pairs)?, hops, targets);
        Ok(TemporalBatch { batch, times: pairs.times.clone(), edge_times })
    }

    fn lists(&self) -> TimedLists<'_> {
        TimedLists { view: self.graph.view(), by_time: Some(&self.by_time), draw: self.draw }
    }

    fn node_info(&self, pairs: &Pairs) -> Result<NodeInfo> {
        let (lists, each) = (self.lists(), pairs.nodes.iter().zip(&pairs.times));
        let degrees = each.map(|(&node, &time)| lists.degree(node, time)).collect::<Result<_>>()?;
        Ok(NodeInfo { ids: pairs.nodes.iter().map(|&v| self.graph.id(v)).collect(), degrees })
    }
}

impl Sampler for TemporalSampler {
    fn name(&self) -> &'static str {
        match self.draw.rule {
            TemporalRule::Recent => "temporal-recent",
            TemporalRule::Uniform => "temporal-uniform",
        }
    }

    fn sample(&self, seeds: &[u32], key: Key, scratch: &mut Scratch) -> Result<MiniBatch> {
        self.graph.check_seeds(seeds)?;
        let times = self.seed_times.of(seeds)?;
        Ok(self.sample_at(seeds, &times, key, scratch)?.batch)
    }

    fn sample_as_of(
        &self,
        seeds: &[u32],
        times: &[i64],
        key: Key,
        scratch: &mut Scratch,
    ) -> Result<MiniBatch> {
        Ok(self.sample_at(seeds, times, key, scratch)?.batch)
    }
}
