//! `all`: every node, for small graphs.

use gnarl_common::rng::Key;
use gnarl_graph::triples::Side;

use super::{Drawn, NegativeSampler, Positives};

/// All nodes, in order of ids ("1-vs-all", Lacroix, Usunier & Obozinski, ICML 2018).
pub struct All {
    nodes: u32,
}

impl All {
    /// All of `nodes` nodes.
    pub fn new(nodes: u32) -> Self {
        Self { nodes }
    }
}

impl NegativeSampler for All {
    fn name(&self) -> &'static str {
        "all"
    }

    fn choose(&self, batch: &Positives<'_>, _: Side, _: Key) -> Drawn {
        Drawn::shared((0..self.nodes).collect(), batch.share.len())
    }
}
