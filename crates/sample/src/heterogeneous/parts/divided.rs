//! The parts of a heterogeneous graph.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Kind, Result};
use gnarl_graph::blocks::Schema;

use crate::heterogeneous::fanouts::HeteroFanouts;
use crate::heterogeneous::sampler::no_weights;
use crate::parts::merge::{Merged, Source, merge};
use crate::parts::{Answer, HopRequest, NeighborService, Routes, Rule};
use crate::scratch::{Hop, Scratch};

/// The parts of an edge type.
#[derive(Clone)]
pub struct EdgeServices {
    /// The service of each part.
    pub parts: Vec<Arc<dyn NeighborService>>,
    /// True if its edges have weights.
    pub weighted: bool,
}

/// Replies to come about the destinations of an edge type, by part.
pub(crate) type Begun = Vec<(usize, Answer, Vec<u32>)>;

/// The parts of a heterogeneous graph, and how many neighbors are sampled from them.
#[derive(Clone)]
pub(crate) struct Divided {
    pub schema: Arc<Schema>,
    /// Per edge type the fan-out of each hop.
    pub fanouts: Vec<Vec<u32>>,
    pub hops: usize,
    /// Per node type the parts that have its nodes' edges.
    pub routes: Vec<Routes>,
    pub edges: Vec<EdgeServices>,
}

impl Divided {
    /// Parts: `routes[t]` are those of node type `t`, and `edges[e]` serve edge type `e`, both in the order of `schema`.
    ///
    /// # Errors
    /// If fan-outs are wrong, a part has no service, or nodes exceed 32-bit ids.
    pub fn new(
        schema: Arc<Schema>,
        fanouts: &HeteroFanouts,
        routes: Vec<Routes>,
        edges: Vec<EdgeServices>,
    ) -> Result<Self> {
        let hops = fanouts.hops();
        let fanouts = fanouts.resolve(&schema)?;
        let parts = routes.first().map_or(0, Routes::num_parts);
        let each = edges.iter().all(|services| services.parts.len() == parts);
        if edges.len() != schema.edge_types().len() || !each {
            return Err(Error::usage("expected a service for each edge type of each part"));
        }
        if routes.len() != schema.node_types().len() {
            return Err(Error::usage("expected routes of each node type"));
        }
        for (name, routes) in schema.node_types().iter().zip(&routes) {
            let nodes = routes.num_nodes();
            if nodes >= u32::MAX as usize {
                let text = format!("{nodes} nodes of type '{name}' exceed 32-bit ids");
                return Err(Error::new(Kind::Limit, text));
            }
        }
        Ok(Self { schema, fanouts, hops, routes, edges })
    }

    /// Rejects seeds that are no nodes of type number `of`.
    ///
    /// # Errors
    /// Names the first one.
    pub fn check_seeds(&self, of: usize, seeds: &[u32]) -> Result<()> {
        let count = self.routes[of].num_nodes();
        match seeds.iter().find(|&&seed| seed as usize >= count) {
            None => Ok(()),
            Some(seed) => {
                let name = &self.schema.node_types()[of];
                let text = format!("seed {seed} is not one of {count} nodes of type '{name}'");
                Err(Error::invalid(text))
            }
        }
    }

    /// Rejects a rule by weights where edges that are drawn from have none.
    ///
    /// # Errors
    /// Names the first edge type.
    pub fn check_weights(&self, rule: Rule) -> Result<()> {
        let unweighted = |(edges, of): (&EdgeServices, &Vec<u32>)| {
            !edges.weighted && of.iter().any(|&fanout| fanout != 0 && fanout != u32::MAX)
        };
        let lacking = (rule == Rule::Weighted)
            .then(|| self.edges.iter().zip(&self.fanouts).position(unweighted));
        match lacking.flatten() {
            Some(edge_type) => Err(no_weights(&self.schema.edge_types()[edge_type])),
            None => Ok(()),
        }
    }

    /// Asks all parts that have edges of `nodes`. An edge type of fan-out 0 asks nobody.
    pub fn begin(
        &self,
        (edge_type, hop): (usize, usize),
        nodes: &[u32],
        (rule, key): (Rule, Key),
    ) -> Begun {
        let fanout = self.fanouts[edge_type][hop];
        if fanout == 0 {
            return Vec::new();
        }
        let routes = &self.routes[self.schema.ends(edge_type).1];
        let mut asked = vec![Vec::new(); routes.num_parts()];
        for (dst, &node) in nodes.iter().enumerate() {
            routes.for_each(node, |part| asked[part].push(dst as u32));
        }
        // Whole lists are alike by every rule, and need none of its columns.
        let rule = if fanout == u32::MAX { Rule::Exact } else { rule };
        let key = self.schema.draw_key(key, edge_type);
        let parts = asked.into_iter().enumerate().filter(|(_, asked)| !asked.is_empty());
        let begin = |(part, asked): (usize, Vec<u32>)| {
            let nodes = asked.iter().map(|&dst| u64::from(nodes[dst as usize])).collect();
            let request = HopRequest::new(nodes, fanout, rule, key);
            (part, self.edges[edge_type].parts[part].ask(request), asked)
        };
        parts.map(begin).collect()
    }

    /// Waits for the replies and adds the sources to `sources`; returns in-degrees too.
    ///
    /// # Errors
    /// If a part does not reply, or there would be too many edges for 32-bit offsets.
    pub fn finish(
        &self,
        (edge_type, hop): (usize, usize),
        num_dst: usize,
        begun: Begun,
        sources: &mut Scratch,
    ) -> Result<(Hop, Vec<u32>)> {
        let nodes = self.routes[self.schema.ends(edge_type).0].num_nodes();
        let wait = |(part, answer, asked): (usize, Answer, Vec<u32>)| {
            let reply = answer()?;
            let checked = reply.check(asked.len(), nodes);
            checked.while_doing(|| format!("sampling from part {part}"))?;
            Ok(Source { asked, reply })
        };
        let replies = begun.into_iter().map(wait).collect::<Result<Vec<_>>>()?;
        let total: usize = replies.iter().map(|source| source.reply.indices.len()).sum();
        if u32::try_from(total).is_err() {
            return Err(Error::new(Kind::Limit, "a block would exceed 4 294 967 295 edges")
                .hint("use smaller batches or fan-outs"));
        }
        let Merged { asked_degrees, indptr, sources: mut indices, weights, .. } =
            merge(num_dst, self.fanouts[edge_type][hop], &replies, None);
        let weights = weights.or(self.edges[edge_type].weighted.then(Vec::new));
        sources.reserve(indices.len());
        sources.insert_all(&mut indices);
        let num_src = sources.nodes().len();
        Ok((Hop { num_src, indptr, indices, weights, edge_features: None }, asked_degrees))
    }
}
