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
        let of = |edge: usize| {
            let key = key.with(edge as u64);
            (0..self.count as u64).map(move |i| key.below(i, self.nodes.into()) as u32)
        };
        let (ids, edges) = (batch.share.clone().flat_map(of).collect(), batch.share.len() as u32);
        Drawn { ids, count: self.count, groups: (0..edges).collect(), masked: Vec::new() }
    }
}
