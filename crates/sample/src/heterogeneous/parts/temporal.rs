//! Mini-batches of a partitioned heterogeneous graph as of times.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Context, Result};
use gnarl_graph::blocks::Schema;

use super::divided::{Divided, EdgeServices};
use crate::heterogeneous::block::{HeteroBatch, HeteroBlock, Relation};
use crate::heterogeneous::fanouts::HeteroFanouts;
use crate::heterogeneous::sampler::HeteroScratch;
use crate::heterogeneous::temporal::{SeedsAt, insert_seeds};
use crate::parts::merge::merge;
use crate::parts::temporal::{Begun, begin, finish, insert, rule_of};
use crate::parts::{AsOf, HopRequest, Routes};
use crate::sampler::shuffled_batches;
use crate::scratch::{Hop, Scratch};
use crate::temporal::{Pairs, TemporalDraw};

/// Samples neighborhoods of seeds at times from the parts of a heterogeneous graph, by
/// [`TemporalRule::exact`](crate::TemporalRule::exact) where they share lists: the batches equal those that a
/// [`HeteroTemporalSampler`](crate::HeteroTemporalSampler) takes from the whole graph. Seeds and input nodes are dataset ids.
#[derive(Clone)]
pub struct HeteroTemporalPartsSampler {
    of: Divided,
    draw: TemporalDraw,
}

impl HeteroTemporalPartsSampler {
    /// A sampler of parts, given as for [`HeteroPartsSampler::new`](crate::HeteroPartsSampler::new).
    ///
    /// # Errors
    /// If fan-outs are wrong, a part has no service, or parts share lists that are not drawn from by numbers of edges.
    pub fn new(
        schema: Arc<Schema>,
        (draw, fanouts): (impl Into<TemporalDraw>, &HeteroFanouts),
        routes: Vec<Routes>,
        edges: Vec<EdgeServices>,
    ) -> Result<Self> {
        let draw = draw.into();
        routes.iter().try_for_each(|of| of.check_draw(draw))?;
        Ok(Self { of: Divided::new(schema, fanouts, routes, edges)?, draw })
    }

    /// A sampler of these parts with other fan-outs.
    ///
    /// # Errors
    /// If fan-outs are wrong.
    pub fn with_fanouts(&self, fanouts: &HeteroFanouts) -> Result<Self> {
        let Divided { schema, routes, edges, .. } = self.of.clone();
        Ok(Self { of: Divided::new(schema, fanouts, routes, edges)?, draw: self.draw })
    }

    /// The node and edge types.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.of.schema
    }

    /// The seeds of every batch of an epoch, as [`HeteroSampler::epoch`](crate::HeteroSampler::epoch).
    pub fn epoch(&self, train: &[u32], batch_size: usize, key: Key) -> Vec<Vec<u32>> {
        shuffled_batches(train, batch_size, key)
    }

    /// The batch for seeds of several node types. Seeds that agree in node and time share a row.
    ///
    /// # Errors
    /// If a type is given twice, a seed is no node, there are not as many times as seeds, a part does not reply, or a block
    /// would exceed 32-bit offsets.
    pub fn sample_at(
        &self,
        seeds: &[SeedsAt<'_>],
        key: Key,
        scratch: &mut HeteroScratch,
    ) -> Result<HeteroBatch> {
        let nodes = scratch.start(self.of.routes.iter().map(Routes::num_nodes));
        let check = |of, seeds: &[u32]| self.of.check_seeds(of, seeds);
        let targets = insert_seeds(&self.of.schema, seeds, nodes, check)?;
        let order = self.of.schema.by_name();
        let blocks = (0..self.of.hops).map(|hop| self.block(hop, &order, key, nodes));
        let mut blocks = blocks.collect::<Result<Vec<_>>>()?;
        blocks.reverse();
        let input_nodes: Vec<Vec<u32>> = nodes.iter().map(|s| s.pairs.nodes.clone()).collect();
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
        let reached: Vec<(Vec<u32>, Vec<i64>)> =
            nodes.iter().map(|s| (s.pairs.nodes.clone(), s.pairs.times.clone())).collect();
        let begun: Vec<Begun> =
            order.iter().map(|&edge_type| self.begin((edge_type, hop), &reached, key)).collect();
        let mut found: Vec<Option<(Hop, Vec<u32>)>> = order.iter().map(|_| None).collect();
        for (&edge_type, begun) in order.iter().zip(begun) {
            let (src, dst) = self.of.schema.ends(edge_type);
            let triple = &self.of.schema.edge_types()[edge_type];
            let drawn = self
                .finish((edge_type, hop), &reached[dst].1, begun, &mut nodes[src].pairs)
                .while_doing(|| format!("sampling edge type {triple}"))?;
            found[edge_type] = Some(drawn);
        }
        let num_dst = reached.iter().map(|(nodes, _)| nodes.len()).collect();
        let num_src: Vec<usize> = nodes.iter().map(|s| s.pairs.nodes.len()).collect();
        let relation = |(edge_type, (hop, degrees))| {
            Relation::new(hop, num_src[self.of.schema.ends(edge_type).0], degrees)
        };
        let relations = found.into_iter().flatten().enumerate().map(relation).collect();
        Ok(HeteroBlock::new(num_dst, num_src, relations))
    }

    /// Asks all parts that own nodes reached over an edge type; of fan-out 0 it asks for their in-degrees.
    fn begin(
        &self,
        (edge_type, hop): (usize, usize),
        reached: &[(Vec<u32>, Vec<i64>)],
        key: Key,
    ) -> Begun {
        let dst = self.of.schema.ends(edge_type).1;
        let (nodes, times) = &reached[dst];
        let (fanout, key) =
            (self.of.fanouts[edge_type][hop], self.of.schema.draw_key(key, edge_type));
        let request = |nodes, as_of: AsOf| HopRequest {
            as_of: Some(as_of),
            ..HopRequest::new(nodes, fanout, rule_of(self.draw), key)
        };
        let services = &self.of.edges[edge_type].parts;
        begin(&self.of.routes[dst], services, (nodes, times, self.draw.rule), request)
    }

    /// Waits for the replies and adds the sources to `sources`; returns in-degrees too.
    fn finish(
        &self,
        (edge_type, hop): (usize, usize),
        times: &[i64],
        begun: Begun,
        sources: &mut Pairs,
    ) -> Result<(Hop, Vec<u32>)> {
        let nodes = self.of.routes[self.of.schema.ends(edge_type).0].num_nodes();
        let shared = self.of.routes[self.of.schema.ends(edge_type).1].shares_lists();
        let replies = finish(begun, nodes, shared)?;
        let fanout = self.of.fanouts[edge_type][hop];
        let merged = merge(times.len(), fanout, &replies, Some(self.draw.rule));
        let indices = insert(&merged, times, sources);
        let weights = merged.weights.or(self.of.edges[edge_type].weighted.then(Vec::new));
        let (num_src, indptr) = (sources.nodes.len(), merged.indptr);
        Ok((Hop { num_src, indptr, indices, weights, edge_features: None }, merged.asked_degrees))
    }
}
