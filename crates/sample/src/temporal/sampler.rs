//! The temporal sampler.

use gnarl_common::rng::Key;
use gnarl_common::{Buf, Context, Error, Result};
use gnarl_graph::blocks::{MiniBatch, NodeInfo};

use super::by_time::ByTime;
use super::pairs::Pairs;
use crate::draw::draw;
use crate::graph::same_length;
use crate::neighbors::Fanouts;
use crate::scratch::{Hop, add_edges, assemble};
use crate::view::View;
use crate::{SampleGraph, Sampler, Scratch};

/// The sampling rule of nodes with more permitted in-neighbors than the fan-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemporalRule {
    /// The most recent ones; uniformly among those that tie for the last places.
    Recent,
    /// A uniform sample without replacement.
    Uniform,
}

/// For every node at every hop, in-neighbors by edges **no later than the node's time**: a seed's
/// own, or that of the seed through which the node was reached.
///
/// So one node of the graph is in a batch once per time at which it is reached. Its sample is
/// a pure function of the key, its dataset id, its time and the fan-out. A destination's edges
/// ascend by time. [`NodeInfo::degrees`] count the permitted edges, so that dividing by degrees
/// tells nothing of the future; in a part those of halo nodes count what the part has.
///
/// An edge at the very time of a seed is permitted: where seeds are themselves edges of the graph,
/// to be predicted, give them the time before.
///
/// Keeps four bytes an edge, the order of each list by time; finding the permitted edges takes the
/// logarithm of the degree.
#[derive(Debug, Clone)]
pub struct TemporalSampler {
    graph: SampleGraph,
    fanouts: Fanouts,
    rule: TemporalRule,
    by_time: ByTime,
    seed_times: Option<Buf<i64>>,
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
    /// If edges have no times, fan-outs are wrong, or a list is not inside the graph.
    pub fn new(graph: &SampleGraph, fanouts: &[i64], rule: TemporalRule) -> Result<Self> {
        let by_time = ByTime::new(graph.view()).while_doing(|| "ordering edges by time")?;
        let (graph, fanouts) = (graph.clone(), Fanouts::new(fanouts)?);
        Ok(Self { graph, fanouts, rule, by_time, seed_times: None })
    }

    /// Sets the time of each local node as a seed of [`Sampler::sample`].
    ///
    /// # Errors
    /// If there are more or fewer times than nodes.
    pub fn with_seed_times(mut self, times: Buf<i64>) -> Result<Self> {
        same_length("seed times", Some(times.len()), self.graph.num_nodes())?;
        self.seed_times = Some(times);
        Ok(self)
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
        if seeds.len() != times.len() {
            let (seeds, times) = (seeds.len(), times.len());
            return Err(Error::usage(format!(
                "expected {seeds} times, one per seed; found {times}"
            )));
        }
        self.graph.check_seeds(seeds)?;
        let view = self.graph.view();
        let Scratch { pairs, seen, .. } = scratch;
        pairs.clear();
        let targets = seeds.iter().zip(times).map(|(&v, &t)| pairs.insert(v, t)).collect();
        let (mut hops, mut edge_times) = (Vec::new(), Vec::new());
        for &fanout in self.fanouts.iter() {
            let (hop, times) = self.hop(view, fanout, key, pairs, seen)?;
            hops.push(hop);
            edge_times.push(times);
        }
        edge_times.reverse();
        let batch = assemble(pairs.nodes.clone(), self.node_info(view, pairs)?, hops, targets);
        Ok(TemporalBatch { batch, times: pairs.times.clone(), edge_times })
    }

    /// Samples in-neighbors of all nodes in `pairs` and adds them to it.
    fn hop(
        &self,
        view: View<'_>,
        fanout: u32,
        key: Key,
        pairs: &mut Pairs,
        seen: &mut Vec<u32>,
    ) -> Result<(Hop, Vec<i64>)> {
        let times = view.needed_times()?;
        let mut indptr = vec![0];
        let mut indices = Vec::new();
        let mut edge_times = Vec::new();
        let mut weights = view.weights.map(|_| Vec::new());
        let (mut total, mut chosen) = (0, Vec::new());
        for dst in 0..pairs.nodes.len() {
            let (node, time) = (pairs.nodes[dst], pairs.times[dst]);
            let list @ (start, _) = view.list(node)?;
            let permitted = self.by_time.until(view, times, list, time);
            chosen.clear();
            chosen.resize(permitted.len().min(fanout as usize), 0);
            let key = key.with(view.id(node)).with(time as u64);
            let time_of = |p: u32| view.time(times, start + p as usize);
            self.rule.choose(permitted, time_of, key, seen, &mut chosen);
            total = add_edges(total, chosen.len() as u32)?;
            indptr.push(total);
            for &position in &chosen {
                let edge = start + position as usize;
                indices.push(pairs.insert(view.source(edge)?, time));
                edge_times.push(view.time(times, edge));
                if let (Some(out), Some(values)) = (&mut weights, view.weights) {
                    out.push(view.weight(values, edge));
                }
            }
        }
        let num_src = pairs.nodes.len();
        Ok((Hop { num_src, indptr, indices, weights, edge_features: None }, edge_times))
    }

    fn node_info(&self, view: View<'_>, pairs: &Pairs) -> Result<NodeInfo> {
        let times = view.needed_times()?;
        let degree = |(&node, &time): (&u32, &i64)| {
            Ok(self.by_time.until(view, times, view.list(node)?, time).len() as u32)
        };
        let degrees = pairs.nodes.iter().zip(&pairs.times).map(degree).collect::<Result<_>>()?;
        Ok(NodeInfo { ids: pairs.nodes.iter().map(|&v| view.id(v)).collect(), degrees })
    }
}

impl TemporalRule {
    /// Fills `out` with positions out of `permitted`, which ascends by `time`; so does `out`.
    fn choose(
        self,
        permitted: &[u32],
        time: impl Fn(u32) -> i64,
        key: Key,
        spare: &mut Vec<u32>,
        out: &mut [u32],
    ) {
        let later = permitted.len() - out.len();
        let Some(&last) = permitted.get(later).filter(|_| later > 0) else {
            return out.copy_from_slice(permitted);
        };
        // The edges before `from` are never taken, those from `to` on always, the rest by chance.
        let (from, to) = match self {
            Self::Uniform => (0, permitted.len()),
            Self::Recent => {
                let from = permitted.partition_point(|&p| time(p) < time(last));
                (from, permitted.partition_point(|&p| time(p) <= time(last)))
            }
        };
        let (some, all) = out.split_at_mut(out.len() - (permitted.len() - to));
        all.copy_from_slice(&permitted[to..]);
        draw(key, (to - from) as u32, some, spare);
        some.sort_unstable();
        for position in some {
            *position = permitted[from + *position as usize];
        }
    }
}

impl Sampler for TemporalSampler {
    fn name(&self) -> &'static str {
        match self.rule {
            TemporalRule::Recent => "temporal-recent",
            TemporalRule::Uniform => "temporal-uniform",
        }
    }

    fn sample(&self, seeds: &[u32], key: Key, scratch: &mut Scratch) -> Result<MiniBatch> {
        let Some(of_nodes) = &self.seed_times else {
            return Err(Error::usage("the temporal sampler lacks the times of seeds")
                .hint("set them by with_seed_times, or pass times to sample_at"));
        };
        self.graph.check_seeds(seeds)?;
        let times: Vec<i64> = seeds.iter().map(|&seed| of_nodes[seed as usize]).collect();
        Ok(self.sample_at(seeds, &times, key, scratch)?.batch)
    }
}
