//! `uniform`: any node, drawn anew for each edge.

use gnarl_common::rng::Key;
use gnarl_graph::triples::Side;

use super::{Drawn, NegativeSampler, Positives};

/// Nodes drawn uniformly, with repetition, `count` per edge.
pub struct Uniform {
    nodes: u32,
    count: usize,
}

impl Uniform {
    /// Draws `count` of `nodes` nodes.
    pub fn new(nodes: u32, count: usize) -> Self {
        Self { nodes, count }
    }
}

impl NegativeSampler for Uniform {
    fn name(&self) -> &'static str {
        "uniform"
    }

    fn choose(&self, batch: &Positives<'_>, _: Side, key: Key) -> Drawn {
        // By the number of an edge: where it stands in the batch depends on the parts of its graph.
        let of = |&edge: &u32| {
            let key = key.with(edge.into());
            (0..self.count as u64).map(move |i| key.below(i, self.nodes.into()) as u32)
        };
        let own = &batch.places[batch.share.clone()];
        let ids = own.iter().flat_map(of).collect();
        let groups = (0..own.len() as u32).collect();
        Drawn { ids, count: self.count, groups, masked: Vec::new() }
    }
}
