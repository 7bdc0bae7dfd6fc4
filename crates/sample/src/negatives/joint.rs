//! `joint`: uniform nodes shared by all edges of a batch (DistDGLv2, section 5.6; as in DGL-KE,
//! Zheng et al., SIGIR 2020): few embeddings are read, and scores are products of matrices.

use gnarl_common::rng::Key;
use gnarl_graph::triples::Side;

use super::{Drawn, NegativeSampler, Positives};

/// Nodes drawn uniformly, with repetition, `count` for a batch.
pub struct Joint {
    nodes: u32,
    count: usize,
}

impl Joint {
    /// Draws `count` of `nodes` nodes.
    pub fn new(nodes: u32, count: usize) -> Self {
        Self { nodes, count }
    }
}

impl NegativeSampler for Joint {
    fn name(&self) -> &'static str {
        "joint"
    }

    fn choose(&self, batch: &Positives<'_>, _: Side, key: Key) -> Drawn {
        let ids = (0..self.count as u64).map(|i| key.below(i, self.nodes.into()) as u32);
        Drawn::shared(ids.collect(), batch.share.len())
    }
}
