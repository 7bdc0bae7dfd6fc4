//! Mini-batches of a partitioned heterogeneous graph.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Context, Result};
use gnarl_graph::blocks::Schema;

use super::divided::{Begun, Divided, EdgeServices};
use crate::heterogeneous::block::{HeteroBatch, HeteroBlock, Relation};
use crate::heterogeneous::fanouts::HeteroFanouts;
use crate::heterogeneous::sampler::{HeteroScratch, targets};
use crate::parts::{Routes, Rule};
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
        of.check_weights(rule)?;
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
            self.of.begin((edge_type, hop), nodes[dst].nodes(), (self.rule, key))
        };
        let begun: Vec<Begun> = order.iter().map(begin).collect();
        let mut found: Vec<Option<(Hop, Vec<u32>)>> = order.iter().map(|_| None).collect();
        for (&edge_type, begun) in order.iter().zip(begun) {
            let (src, dst) = self.of.schema.ends(edge_type);
            let triple = &self.of.schema.edge_types()[edge_type];
            let drawn = self
                .of
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
}
