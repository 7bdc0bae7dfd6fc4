//! Machines, then workers: over every partitioner.

use gnarl_common::Kind;
use gnarl_common::rng::Key;
use gnarl_graph::MemoryEdges;
use gnarl_partition::{PartitionOptions, TwoLevel, VertexPartitioner, registry};

const NODES: u64 = 600;

fn graph() -> MemoryEdges {
    let key = Key::new(9);
    let pair = |i: u64| (key.below(2 * i, NODES), key.below(2 * i + 1, NODES));
    let edges: Vec<_> = (0..2000).map(pair).flat_map(|(u, v)| [(u, v), (v, u)]).collect();
    MemoryEdges::new(NODES, edges).unwrap()
}

fn options(parts: usize) -> PartitionOptions {
    PartitionOptions { parts, train: (0..NODES / 3).collect(), ..PartitionOptions::default() }
}

#[test]
fn machines_are_what_one_level_makes_and_workers_share_them() {
    for algorithm in registry() {
        let (machines, workers) = (3, 4);
        let two = TwoLevel { algorithm: &*algorithm, machines, workers };
        let result = two.partition(&mut graph(), &options(12)).unwrap();
        let first = PartitionOptions {
            balance: 1.05f64.sqrt(),
            memory: (4 << 30) - 6 * NODES,
            ..options(machines)
        };
        let one = algorithm.partition(&mut graph(), &first).unwrap();
        let machine: Vec<u16> = result.of.iter().map(|&part| part / workers as u16).collect();
        assert_eq!(machine, one.of, "{}", algorithm.name());
        assert_eq!((result.parts, two.name()), (12, algorithm.name()));
        assert!(result.sizes().iter().all(|&size| size > 0), "{}", algorithm.name());
    }
}

#[test]
fn few_nodes_leave_workers_without_any() {
    let edges = MemoryEdges::new(4, vec![(0, 1), (1, 0), (2, 3)]).unwrap();
    for algorithm in registry() {
        let two = TwoLevel { algorithm: &*algorithm, machines: 2, workers: 2 };
        let result = two.partition(&mut edges.clone(), &options_of(4, 1.5)).unwrap();
        assert!(result.of.iter().all(|&part| part < 4), "{}", algorithm.name());
        let wrong = two.partition(&mut edges.clone(), &options_of(3, 1.5)).unwrap_err();
        assert_eq!(wrong.kind(), Kind::Usage, "{}", algorithm.name());
    }
}

fn options_of(parts: usize, balance: f64) -> PartitionOptions {
    PartitionOptions { parts, balance, ..PartitionOptions::default() }
}
