//! The parts of a heterogeneous graph.

use std::sync::Arc;

use gnarl_common::{Error, Kind, Result};
use gnarl_graph::blocks::Schema;

use crate::heterogeneous::fanouts::HeteroFanouts;
use crate::parts::{NeighborService, Routes};

/// The parts of an edge type.
#[derive(Clone)]
pub struct EdgeServices {
    /// The service of each part.
    pub parts: Vec<Arc<dyn NeighborService>>,
    /// True if its edges have weights.
    pub weighted: bool,
}

/// The parts of a heterogeneous graph, and how many neighbors are sampled from them.
#[derive(Clone)]
pub(super) struct Divided {
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
}
