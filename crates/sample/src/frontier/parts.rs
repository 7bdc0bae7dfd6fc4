//! The frontier sampler over the parts of a partitioned graph.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Result};
use gnarl_graph::blocks::Schema;

use super::batch::{FrontierBatch, FrontierEdges};
use crate::heterogeneous::{Begun, Divided, targets};
use crate::parts::{Routes, Rule};
use crate::scratch::{Hop, Scratch};
use crate::{EdgeServices, HeteroFanouts, HeteroScratch};

/// Samples neighborhoods of seeds from parts, on this machine or others: the batches equal those that a
/// [`FrontierSampler`](super::FrontierSampler) of the same rule takes from the whole graph, but for the rows of edges, which
/// parts do not know. Seeds and nodes are dataset ids.
///
/// The requests of a hop to all parts over all edge types are sent before the first reply is waited for (DistDGLv2, section
/// 5.4; GLISP, section III-C for parts that share lists).
#[derive(Clone)]
pub struct FrontierPartsSampler {
    of: Divided,
    rule: Rule,
}

impl FrontierPartsSampler {
    /// A sampler of parts: `routes[t]` are those of node type `t`, and `edges[e]` serve edge type `e`, both in the order
    /// of `schema`.
    ///
    /// # Errors
    /// If fan-outs are wrong, a part has no service, nodes exceed 32-bit ids, the rule needs weights that edges lack, or
    /// does not draw from shared lists what it draws from whole ones.
    pub fn new(
        schema: Arc<Schema>,
        (rule, fanouts): (Rule, &HeteroFanouts),
        routes: Vec<Routes>,
        edges: Vec<EdgeServices>,
    ) -> Result<Self> {
        let of = Divided::new(schema, fanouts, routes, edges)?;
        of.check_weights(rule)?;
        let draws = of.fanouts.iter().flatten().any(|&fanout| fanout != 0 && fanout != u32::MAX);
        if draws && !rule.merges() && of.routes.iter().any(Routes::shares_lists) {
            let message = "the parts of a vertex cut share lists, from which 'uniform' draws other edges than from whole ones";
            return Err(Error::usage(message).hint(
                "take the sampler 'exact' or 'labor', or partition the graph by an edge cut",
            ));
        }
        Ok(Self { of, rule })
    }

    /// The rule by which neighbors are drawn.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The batch for seeds of several node types: the number of each type, and dataset ids.
    ///
    /// # Errors
    /// If a type is given twice, a seed is no node, or a part does not reply.
    pub fn sample_types(
        &self,
        seeds: &[(usize, &[u32])],
        key: Key,
        scratch: &mut HeteroScratch,
    ) -> Result<FrontierBatch> {
        let schema = &self.of.schema;
        seeds.iter().try_for_each(|&(of, seeds)| self.of.check_seeds(of, seeds))?;
        let nodes = scratch.start(self.of.routes.iter().map(Routes::num_nodes));
        let targets = targets(schema, seeds, nodes)?;
        let count = |nodes: &[Scratch]| -> Vec<usize> {
            nodes.iter().map(|scratch| scratch.nodes().len()).collect()
        };
        let mut expanded = vec![0; nodes.len()];
        let mut reached = count(nodes);
        let mut nodes_of_hop: Vec<Vec<usize>> = reached.iter().map(|&seeds| vec![seeds]).collect();
        let mut edges = vec![FrontierEdges::default(); schema.edge_types().len()];
        let order = schema.by_name();
        for hop in 0..self.of.hops {
            let begin = |&edge_type: &usize| {
                let dst = schema.ends(edge_type).1;
                let frontier = &nodes[dst].nodes()[expanded[dst]..reached[dst]];
                self.of.begin((edge_type, hop), frontier, (self.rule, key))
            };
            let begun: Vec<Begun> = order.iter().map(begin).collect();
            for (&edge_type, begun) in order.iter().zip(begun) {
                let (src, dst) = schema.ends(edge_type);
                let drawn = self
                    .of
                    .finish((edge_type, hop), reached[dst] - expanded[dst], begun, &mut nodes[src])
                    .while_doing(|| {
                        format!("sampling edge type {}", schema.edge_types()[edge_type])
                    })?;
                edges[edge_type].extend(expanded[dst], drawn.0);
            }
            expanded = reached;
            reached = count(nodes);
            for ((of_hop, now), before) in nodes_of_hop.iter_mut().zip(&reached).zip(&expanded) {
                of_hop.push(now - before);
            }
        }
        let nodes = nodes.iter().map(|scratch| scratch.nodes().to_vec()).collect();
        let schema = schema.clone();
        Ok(FrontierBatch { schema, nodes, nodes_of_hop, edges, targets, trees: None })
    }
}

impl FrontierEdges {
    /// Adds the edges of a hop into the nodes from position `first` on.
    fn extend(&mut self, first: usize, hop: Hop) {
        self.of_hop.push(hop.indices.len());
        for (at, list) in hop.indptr.windows(2).enumerate() {
            let repeated = std::iter::repeat_n((first + at) as u32, (list[1] - list[0]) as usize);
            self.destinations.extend(repeated);
        }
        self.sources.extend(hop.indices);
        if let Some(weights) = hop.weights {
            self.weights.get_or_insert_default().extend(weights);
        }
    }
}
