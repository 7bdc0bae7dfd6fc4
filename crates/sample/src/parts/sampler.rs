//! Mini-batches of a partitioned graph.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Kind, Result};
use gnarl_graph::blocks::{EdgeRows, MiniBatch, NodeInfo};

use super::hop::{HopRequest, Rule};
use super::merge::{Merged, Source, merge};
use super::replica::Replica;
use super::routes::Routes;
use super::service::NeighborService;
use crate::Sampler;
use crate::neighbors::Fanouts;
use crate::scratch::{Hop, Scratch};

/// Samples neighborhoods of seeds from their parts: the batches equal those that a
/// [`NeighborSampler`](crate::NeighborSampler) of the same rule takes from the whole graph, but for [`Rule::Uniform`] where
/// parts share lists. Seeds and input nodes are dataset ids.
pub struct PartsSampler {
    rule: Rule,
    fanouts: Fanouts,
    routes: Routes,
    services: Vec<Arc<dyn NeighborService>>,
    replica: Option<Arc<Replica>>,
    /// Values of the features of an edge; 0 if none are asked for.
    edge_width: usize,
}

impl PartsSampler {
    /// A sampler of parts, `services[p]` serving part `p`; `fanouts` as for
    /// [`NeighborSampler::new`](crate::NeighborSampler::new).
    ///
    /// # Errors
    /// If fan-outs are wrong, or a part has no service.
    pub fn new(
        rule: Rule,
        fanouts: &[i64],
        routes: Routes,
        services: Vec<Arc<dyn NeighborService>>,
    ) -> Result<Self> {
        routes.check_services(services.len())?;
        Ok(Self {
            rule,
            fanouts: Fanouts::new(fanouts)?,
            routes,
            services,
            replica: None,
            edge_width: 0,
        })
    }

    /// Samples the lists in `replica` locally, without requests to their parts.
    pub fn with_replica(self, replica: Arc<Replica>) -> Self {
        Self { replica: Some(replica), ..self }
    }

    /// Asks for the features of edges, `width` values each.
    pub fn with_edge_features(self, width: usize) -> Self {
        Self { edge_width: width, ..self }
    }

    /// One hop from all nodes of the batch, which adds its new nodes.
    fn hop(
        &self,
        fanout: u32,
        key: Key,
        scratch: &mut Scratch,
        degrees: &mut Vec<u32>,
    ) -> Result<Hop> {
        let num_dst = scratch.nodes().len();
        let sources = self.ask(scratch.nodes(), fanout, key)?;
        let total: usize = sources.iter().map(|s| s.reply.indices.len()).sum();
        if u32::try_from(total).is_err() {
            return Err(Error::new(Kind::Limit, "a block would exceed 4 294 967 295 edges")
                .hint("use smaller batches or fan-outs"));
        }
        let mut merged = merge(num_dst, fanout, &sources, None);
        let edge_features = self.edge_features(&mut merged)?;
        let Merged { asked_degrees, indptr, sources: mut indices, degrees: found, weights, .. } =
            merged;
        degrees[..num_dst].copy_from_slice(&asked_degrees);
        scratch.reserve(indices.len());
        scratch.insert_all(&mut indices);
        degrees.resize(scratch.nodes().len(), 0);
        for (&at, &degree) in indices.iter().zip(&found) {
            degrees[at as usize] = degree;
        }
        let num_src = scratch.nodes().len();
        Ok(Hop { num_src, indptr, indices, weights, edge_features })
    }

    /// Features of the edges of a hop, if they were asked for.
    fn edge_features(&self, merged: &mut Merged) -> Result<Option<EdgeRows>> {
        let (edges, width) = (merged.sources.len(), self.edge_width);
        let values = std::mem::take(&mut merged.edge_features);
        if values.len() != edges * width {
            let found = values.len();
            return Err(Error::invalid(format!(
                "expected features of {edges} edges, {width} values each; found {found} values"
            )));
        }
        Ok((width > 0).then_some(EdgeRows { width, values }))
    }

    /// Sends requests to all parts that have edges of `nodes`, concurrently, and waits for their
    /// replies.
    fn ask(&self, nodes: &[u32], fanout: u32, key: Key) -> Result<Vec<Source>> {
        let copied = self.services.len();
        let replica = self.replica.as_deref().map(|replica| replica as &dyn NeighborService);
        let services: Vec<_> = self.services.iter().map(Arc::as_ref).chain(replica).collect();
        let mut asked = vec![Vec::new(); services.len()];
        for (dst, &node) in nodes.iter().enumerate() {
            match &self.replica {
                Some(replica) if replica.has(node) => asked[copied].push(dst as u32),
                _ => self.routes.for_each(node, |part| asked[part].push(dst as u32)),
            }
        }
        let request = |asked: &[u32]| HopRequest {
            nodes: asked.iter().map(|&dst| u64::from(nodes[dst as usize])).collect(),
            fanout,
            rule: self.rule,
            key,
            edge_features: self.edge_width > 0,
            as_of: None,
        };
        let parts = asked.into_iter().enumerate().filter(|(_, asked)| !asked.is_empty());
        let answers: Vec<_> =
            parts.map(|(part, asked)| (part, services[part].ask(request(&asked)), asked)).collect();
        let wait = |(part, answer, asked): (usize, super::Answer, Vec<u32>)| {
            let reply = answer()?;
            reply
                .check(asked.len(), self.routes.num_nodes())
                .while_doing(|| format!("sampling from part {part}"))?;
            Ok(Source { asked, reply })
        };
        answers.into_iter().map(wait).collect()
    }
}

impl Sampler for PartsSampler {
    fn name(&self) -> &'static str {
        self.rule.name()
    }

    fn sample(&self, seeds: &[u32], key: Key, scratch: &mut Scratch) -> Result<MiniBatch> {
        let nodes = self.routes.num_nodes();
        if let Some(seed) = seeds.iter().find(|&&seed| seed as usize >= nodes) {
            return Err(Error::invalid(format!("seed {seed} is not one of {nodes} nodes")));
        }
        let targets = scratch.start(nodes, seeds);
        let mut degrees = vec![0; scratch.nodes().len()];
        let mut hops = Vec::new();
        for &fanout in self.fanouts.iter() {
            hops.push(self.hop(fanout, key, scratch, &mut degrees)?);
        }
        let ids = scratch.nodes().iter().map(|&node| u64::from(node)).collect();
        Ok(scratch.finish(NodeInfo { ids, degrees }, hops, targets))
    }
}
