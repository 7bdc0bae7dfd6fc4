//! `random`: parts of equal size drawn at random; the baseline that ignores edges.

use gnarl_common::error::Result;
use gnarl_common::rng::Key;
use gnarl_graph::EdgeStream;

use crate::edge_cut::partitioner::{Assignment, PartitionOptions, VertexPartitioner};

/// Sends node `v` to `π(v) mod parts`, where π is a random permutation of the nodes that is a pure
/// function of the seed: no table, and part sizes differ by at most one. Memory: the result.
#[derive(Debug, Clone, Copy, Default)]
pub struct Random;

impl VertexPartitioner for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        let nodes = edges.num_nodes();
        options.check(nodes)?;
        let permutation = Permutation::new(nodes, Key::new(options.seed));
        let parts = options.parts as u64;
        let of = (0..nodes).map(|v| (permutation.of(v) % parts) as u16).collect();
        Ok(Assignment { parts: options.parts, of })
    }

    fn memory(&self, nodes: u64, _edges: u64, _parts: usize) -> Option<u64> {
        Some(2 * nodes)
    }
}

const ROUNDS: u64 = 6;

/// A random permutation of `0..n`: a Feistel network over the next even power of two, walked until
/// it comes back below `n` (Black and Rogaway, CT-RSA 2002).
struct Permutation {
    n: u64,
    half: u32,
    key: Key,
}

impl Permutation {
    fn new(n: u64, key: Key) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        Self { n, half: bits.div_ceil(2).max(1), key }
    }

    fn of(&self, mut id: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        loop {
            let (mut left, mut right) = (id >> self.half, id & mask);
            for round in 0..ROUNDS {
                (left, right) = (right, left ^ (self.key.with(round).u64(right) & mask));
            }
            id = left << self.half | right;
            if id < self.n {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_hit_once() {
        for n in [1, 2, 3, 17, 1000, 4097] {
            let permutation = Permutation::new(n, Key::new(5));
            let mut images: Vec<u64> = (0..n).map(|v| permutation.of(v)).collect();
            assert!(n < 100 || images != (0..n).collect::<Vec<_>>());
            images.sort_unstable();
            assert_eq!(images, (0..n).collect::<Vec<_>>());
        }
    }
}
