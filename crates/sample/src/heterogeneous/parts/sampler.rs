//! Mini-batches of a partitioned heterogeneous graph.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Kind, Result};
use gnarl_graph::blocks::Schema;

use super::divided::{Divided, EdgeServices};
use crate::heterogeneous::block::{HeteroBatch, HeteroBlock, Relation};
use crate::heterogeneous::fanouts::HeteroFanouts;
use crate::heterogeneous::sampler::{HeteroScratch, no_weights, targets};
use crate::parts::merge::{Merged, Source, merge};
use crate::parts::{Answer, HopRequest, Routes, Rule};
use crate::sampler::shuffled_batches;
use crate::scratch::{Hop, Scratch};

/// Samples neighborhoods of seeds from the parts of a heterogeneous graph: the batches equal those that a
/// [`HeteroSampler`](crate::HeteroSampler) of the same rule takes from the whole graph (DistDGLv2, section 5.4; GLISP,
/// section III-C for parts that share lists), but for [`Rule::Uniform`] where parts share lists. Seeds and input nodes are
/// dataset ids.
///
/// The requests of a hop to all parts over all edge types are sent before the first reply is waited for.
#[derive(Clone)]
pub struct HeteroPartsSampler {
    of: Divided,
    rule: Rule,
}

/// Replies to come about the destinations of an edge type, by part.
type Begun = Vec<(usize, Answer, Vec<u32>)>;

impl HeteroPartsSampler {
    /// A sampler of parts: `routes[t]` are those of node type `t`, and `edges[e]` serve edge type `e`, both in the order
    /// of `schema`.
    ///
    /// # Errors
    /// If fan-outs are wrong, a part has no service, nodes exceed 32-bit ids, or the rule needs weights that edges lack.
    pub fn new(
        schema: Arc<Schema>,
        (rule, fanouts): (Rule, &HeteroFanouts),
        routes: Vec<Routes>,
        edges: Vec<EdgeServices>,
    ) -> Result<Self> {
        let of = Divided::new(schema, fanouts, routes, edges)?;
        let unweighted = |(edges, of): (&EdgeServices, &Vec<u32>)| {
            !edges.weighted && of.iter().any(|&fanout| fanout != 0 && fanout != u32::MAX)
        };
        let lacking =
            (rule == Rule::Weighted).then(|| of.edges.iter().zip(&of.fanouts).position(unweighted));
        if let Some(edge_type) = lacking.flatten() {
            return Err(no_weights(&of.schema.edge_types()[edge_type]));
        }
        Ok(Self { of, rule })
    }

    /// The node and edge types.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.of.schema
    }

    /// The seeds of every batch of an epoch, as [`HeteroSampler::epoch`](crate::HeteroSampler::epoch).
    pub fn epoch(&self, train: &[u32], batch_size: usize, key: Key) -> Vec<Vec<u32>> {
        shuffled_batches(train, batch_size, key)
    }

    /// The batch for seeds of several node types: the number of each type, and dataset ids.
    ///
    /// # Errors
    /// If a type is given twice, a seed is no node, a part does not reply, or a block would exceed 32-bit offsets.
    pub fn sample_types(
        &self,
        seeds: &[(usize, &[u32])],
        key: Key,
        scratch: &mut HeteroScratch,
    ) -> Result<HeteroBatch> {
        seeds.iter().try_for_each(|&(of, seeds)| self.of.check_seeds(of, seeds))?;
        let nodes = scratch.start(self.of.routes.iter().map(Routes::num_nodes));
        let targets = targets(&self.of.schema, seeds, nodes)?;
        let order = self.of.schema.by_name();
        let blocks = (0..self.of.hops).map(|hop| self.block(hop, &order, key, nodes));
        let mut blocks = blocks.collect::<Result<Vec<_>>>()?;
        blocks.reverse();
        let input_nodes: Vec<Vec<u32>> = nodes.iter().map(|s| s.nodes().to_vec()).collect();
        let ids = |nodes: &Vec<u32>| nodes.iter().map(|&node| u64::from(node)).collect();
        let ids = input_nodes.iter().map(ids).collect();
        Ok(HeteroBatch { schema: self.of.schema.clone(), blocks, input_nodes, ids, targets })
    }

    /// One hop from all nodes of the batch over all edge types, in the order of their names.
    fn block(
        &self,
        hop: usize,
        order: &[usize],
        key: Key,
        nodes: &mut [Scratch],
    ) -> Result<HeteroBlock> {
        let num_dst: Vec<usize> = nodes.iter().map(|scratch| scratch.nodes().len()).collect();
        let begin = |&edge_type: &usize| {
            let dst = self.of.schema.ends(edge_type).1;
            self.begin((edge_type, hop), nodes[dst].nodes(), key)
        };
        let begun: Vec<Begun> = order.iter().map(begin).collect();
        let mut found: Vec<Option<(Hop, Vec<u32>)>> = order.iter().map(|_| None).collect();
        for (&edge_type, begun) in order.iter().zip(begun) {
            let (src, dst) = self.of.schema.ends(edge_type);
            let triple = &self.of.schema.edge_types()[edge_type];
            let drawn = self
                .finish((edge_type, hop), num_dst[dst], begun, &mut nodes[src])
                .while_doing(|| format!("sampling edge type {triple}"))?;
            found[edge_type] = Some(drawn);
        }
        let num_src: Vec<usize> = nodes.iter().map(|scratch| scratch.nodes().len()).collect();
        let relation = |(edge_type, (hop, degrees))| {
            Relation::new(hop, num_src[self.of.schema.ends(edge_type).0], degrees)
        };
        let relations = found.into_iter().flatten().enumerate().map(relation).collect();
        Ok(HeteroBlock::new(num_dst, num_src, relations))
    }

    /// Asks all parts that have edges of `nodes`. An edge type of fan-out 0 asks nobody.
    fn begin(&self, (edge_type, hop): (usize, usize), nodes: &[u32], key: Key) -> Begun {
        let fanout = self.of.fanouts[edge_type][hop];
        if fanout == 0 {
            return Vec::new();
        }
        let routes = &self.of.routes[self.of.schema.ends(edge_type).1];
        let mut asked = vec![Vec::new(); routes.num_parts()];
        for (dst, &node) in nodes.iter().enumerate() {
            routes.for_each(node, |part| asked[part].push(dst as u32));
        }
        // Whole lists are alike by every rule, and need none of its columns.
        let rule = if fanout == u32::MAX { Rule::Exact } else { self.rule };
        let key = self.of.schema.draw_key(key, edge_type);
        let parts = asked.into_iter().enumerate().filter(|(_, asked)| !asked.is_empty());
        let begin = |(part, asked): (usize, Vec<u32>)| {
            let nodes = asked.iter().map(|&dst| u64::from(nodes[dst as usize])).collect();
            let request = HopRequest::new(nodes, fanout, rule, key);
            (part, self.of.edges[edge_type].parts[part].ask(request), asked)
        };
        parts.map(begin).collect()
    }

    /// Waits for the replies and adds the sources to `sources`; returns in-degrees too.
    fn finish(
        &self,
        (edge_type, hop): (usize, usize),
        num_dst: usize,
        begun: Begun,
        sources: &mut Scratch,
    ) -> Result<(Hop, Vec<u32>)> {
        let nodes = self.of.routes[self.of.schema.ends(edge_type).0].num_nodes();
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
            merge(num_dst, self.of.fanouts[edge_type][hop], &replies, None);
        let weights = weights.or(self.of.edges[edge_type].weighted.then(Vec::new));
        sources.reserve(indices.len());
        sources.insert_all(&mut indices);
        let num_src = sources.nodes().len();
        Ok((Hop { num_src, indptr, indices, weights, edge_features: None }, asked_degrees))
    }
}
