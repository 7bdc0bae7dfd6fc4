//! Graphs that partitioners trip over.

use gnarl_common::rng::Key;
use gnarl_graph::{EdgeChunk, EdgeStream, MemoryEdges};

/// Graphs with what partitioners trip over.
pub fn graphs() -> Vec<(&'static str, MemoryEdges)> {
    let both = |pairs: Vec<(u64, u64)>| pairs.into_iter().flat_map(|(u, v)| [(u, v), (v, u)]);
    let random = |n: u64, count: u64| {
        let key = Key::new(n);
        (0..count).map(move |i| (key.below(2 * i, n), key.below(2 * i + 1, n)))
    };
    let ring = |n: u64, from: u64| (0..n).map(move |i| (from + i, from + (i + 1) % n));
    let make = |n, edges: Vec<(u64, u64)>| MemoryEdges::new(n, edges).unwrap();
    vec![
        ("no edges", make(50, vec![])),
        ("self loops only", make(20, (0..20).map(|v| (v, v)).collect())),
        ("directed", make(400, random(400, 1500).collect())),
        ("undirected", make(400, both(random(400, 1500).collect()).collect())),
        ("duplicates", make(60, [(0, 1), (1, 0), (2, 3)].repeat(100))),
        ("components", make(90, (0..9).flat_map(|c| ring(10, 10 * c)).collect())),
        ("isolated nodes", make(300, random(100, 400).collect())),
        ("star", make(200, both((1..200).map(|v| (0, v)).collect()).collect())),
        ("path", make(128, (0..127).map(|v| (v, v + 1)).collect())),
    ]
}

/// A graph whose size is only claimed.
pub struct Claimed(pub u64);

impl EdgeStream for Claimed {
    fn num_nodes(&self) -> u64 {
        self.0
    }

    fn num_edges(&self) -> u64 {
        self.0
    }

    fn reset(&mut self) -> gnarl_common::Result<()> {
        Ok(())
    }

    fn next_chunk(&mut self, chunk: &mut EdgeChunk) -> gnarl_common::Result<bool> {
        chunk.clear();
        Ok(false)
    }
}
