//! Mini-batches of a partitioned graph as of times.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Buf, Context, Error, Kind, Result};
use gnarl_graph::blocks::{EdgeRows, MiniBatch, NodeInfo};

use super::hop::{AsOf, HopRequest, Rule};
use super::merge::{Merged, Source, merge};
use super::routes::Routes;
use super::service::{Answer, NeighborService};
use crate::Sampler;
use crate::graph::same_length;
use crate::neighbors::Fanouts;
use crate::scratch::{Hop, Scratch, assemble};
use crate::temporal::{Pairs, SeedTimes, TemporalDraw, TemporalRule};

/// Samples neighborhoods as of times from parts, by [`TemporalRule::exact`] where they share lists: the batches equal
/// those that a [`TemporalSampler`](crate::TemporalSampler) takes from the whole graph. Seeds and input nodes are
/// dataset ids.
///
/// A batch takes a request per part and hop, and one more for the in-degrees of its input nodes as of their times.
pub struct TemporalPartsSampler {
    draw: TemporalDraw,
    fanouts: Fanouts,
    routes: Routes,
    services: Vec<Arc<dyn NeighborService>>,
    /// Values of the features of an edge; 0 if none are asked for.
    edge_width: usize,
    seed_times: SeedTimes,
}

impl TemporalPartsSampler {
    /// A sampler of parts, `services[p]` serving part `p`; `fanouts` as for
    /// [`TemporalSampler::new`](crate::TemporalSampler::new). Seeds without a time are later than all edges.
    ///
    /// # Errors
    /// If fan-outs are wrong, a part has no service, or parts share lists that are not drawn from by numbers of edges.
    pub fn new(
        draw: impl Into<TemporalDraw>,
        fanouts: &[i64],
        routes: Routes,
        services: Vec<Arc<dyn NeighborService>>,
    ) -> Result<Self> {
        let draw = draw.into();
        routes.check_draw(draw)?;
        routes.check_services(services.len())?;
        let (fanouts, seed_times) = (Fanouts::new(fanouts)?, SeedTimes::End);
        Ok(Self { draw, fanouts, routes, services, edge_width: 0, seed_times })
    }

    /// Asks for the features of edges, `width` values each.
    pub fn with_edge_features(self, width: usize) -> Self {
        Self { edge_width: width, ..self }
    }

    /// Sets the time of each node as a seed of [`Sampler::sample`].
    ///
    /// # Errors
    /// If there are more or fewer times than nodes.
    pub fn with_seed_times(self, times: Buf<i64>) -> Result<Self> {
        same_length("seed times", Some(times.len()), self.routes.num_nodes())?;
        Ok(Self { seed_times: SeedTimes::OfNodes(times), ..self })
    }

    /// One hop from pairs of node and time, of at most `fanout` edges each.
    fn merged(&self, nodes: &[u32], times: &[i64], fanout: u32, key: Key) -> Result<Merged> {
        let request = |nodes, as_of| HopRequest {
            nodes,
            fanout,
            rule: rule_of(self.draw),
            key,
            edge_features: self.edge_width > 0,
            as_of: Some(as_of),
        };
        let begun = begin(&self.routes, &self.services, (nodes, times, self.draw.rule), request);
        let sources = finish(begun, self.routes.num_nodes(), self.routes.shares_lists())?;
        Ok(merge(nodes.len(), fanout, &sources, Some(self.draw.rule)))
    }

    fn hop(&self, fanout: u32, key: Key, pairs: &mut Pairs, degrees: &mut Vec<u32>) -> Result<Hop> {
        let (nodes, times) = (pairs.nodes.clone(), pairs.times.clone());
        let merged = self.merged(&nodes, &times, fanout, key)?;
        degrees.clear();
        degrees.extend_from_slice(&merged.asked_degrees);
        let indices = insert(&merged, &times, pairs);
        let (edges, width) = (indices.len(), self.edge_width);
        if merged.edge_features.len() != edges * width {
            let found = merged.edge_features.len();
            return Err(Error::invalid(format!(
                "expected features of {edges} edges, {width} values each; found {found} values"
            )));
        }
        let rows = EdgeRows { width, values: merged.edge_features };
        let edge_features = (width > 0).then_some(rows);
        let num_src = pairs.nodes.len();
        let (indptr, weights) = (merged.indptr, merged.weights);
        Ok(Hop { num_src, indptr, indices, weights, edge_features })
    }
}

/// The rule of requests that draw at times.
pub(crate) fn rule_of(draw: TemporalDraw) -> Rule {
    if draw.exact { Rule::Exact } else { Rule::Uniform }
}

/// Replies to come, by part, and the destinations that they cover.
pub(crate) type Begun = Vec<(usize, Answer, Vec<u32>)>;

/// Asks the parts that have edges of nodes about them at times; `request` makes a request of the nodes of a part.
pub(crate) fn begin(
    routes: &Routes,
    services: &[Arc<dyn NeighborService>],
    (nodes, times, rule): (&[u32], &[i64], TemporalRule),
    request: impl Fn(Vec<u64>, AsOf) -> HopRequest,
) -> Begun {
    let mut asked = vec![Vec::new(); services.len()];
    for (dst, &node) in nodes.iter().enumerate() {
        routes.for_each(node, |part| asked[part].push(dst as u32));
    }
    let parts = asked.into_iter().enumerate().filter(|(_, asked)| !asked.is_empty());
    let begin = |(part, asked): (usize, Vec<u32>)| {
        let ids = asked.iter().map(|&dst| u64::from(nodes[dst as usize])).collect();
        let times = asked.iter().map(|&dst| times[dst as usize]).collect();
        (part, services[part].ask(request(ids, AsOf { times, rule })), asked)
    };
    parts.map(begin).collect()
}

/// Waits for replies about edges that come from `nodes` nodes; of shares of lists, to be merged, if `shared`.
pub(crate) fn finish(begun: Begun, nodes: usize, shared: bool) -> Result<Vec<Source>> {
    let wait = |(part, answer, asked): (usize, Answer, Vec<u32>)| {
        let reply = answer()?;
        let checked = reply.check(asked.len(), nodes).and_then(|()| {
            match shared && (reply.times.is_none() || reply.numbers.is_none()) {
                true => Err(Error::invalid("invalid reply: edges without times and numbers")),
                false => Ok(()),
            }
        });
        checked.while_doing(|| format!("sampling from part {part}"))?;
        Ok(Source { asked, reply })
    };
    let sources = begun.into_iter().map(wait).collect::<Result<Vec<_>>>()?;
    let total: usize = sources.iter().map(|source| source.reply.indices.len()).sum();
    if u32::try_from(total).is_err() {
        return Err(Error::new(Kind::Limit, "a block would exceed 4 294 967 295 edges")
            .hint("use smaller batches or fan-outs"));
    }
    Ok(sources)
}

/// The positions of the sources of all edges among `pairs`, each at the time of its destination.
pub(crate) fn insert(merged: &Merged, times: &[i64], pairs: &mut Pairs) -> Vec<u32> {
    let mut indices = Vec::with_capacity(merged.sources.len());
    for (dst, &time) in times.iter().enumerate() {
        let edges = merged.indptr[dst] as usize..merged.indptr[dst + 1] as usize;
        indices.extend(merged.sources[edges].iter().map(|&source| pairs.insert(source, time)));
    }
    indices
}

impl Sampler for TemporalPartsSampler {
    fn name(&self) -> &'static str {
        match self.draw.rule {
            TemporalRule::Recent => "temporal-recent",
            TemporalRule::Uniform => "temporal-uniform",
        }
    }

    fn sample(&self, seeds: &[u32], key: Key, scratch: &mut Scratch) -> Result<MiniBatch> {
        let times = self.seed_times.of(seeds)?;
        self.sample_as_of(seeds, &times, key, scratch)
    }

    fn sample_as_of(
        &self,
        seeds: &[u32],
        times: &[i64],
        key: Key,
        scratch: &mut Scratch,
    ) -> Result<MiniBatch> {
        let nodes = self.routes.num_nodes();
        if let Some(seed) = seeds.iter().find(|&&seed| seed as usize >= nodes) {
            return Err(Error::invalid(format!("seed {seed} is not one of {nodes} nodes")));
        }
        let Scratch { pairs, .. } = scratch;
        pairs.clear();
        let targets = pairs.insert_seeds(seeds, times)?;
        let (mut hops, mut degrees) = (Vec::new(), Vec::new());
        for &fanout in self.fanouts.iter() {
            hops.push(self.hop(fanout, key, pairs, &mut degrees)?);
        }
        // The last sources were not asked about yet.
        let known = degrees.len();
        let last = self.merged(&pairs.nodes[known..], &pairs.times[known..], 0, key)?;
        degrees.extend_from_slice(&last.asked_degrees);
        let ids = pairs.nodes.iter().map(|&node| u64::from(node)).collect();
        Ok(assemble(pairs.nodes.clone(), NodeInfo { ids, degrees }, hops, targets))
    }
}
