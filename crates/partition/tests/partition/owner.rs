//! The pick of one replica of each node, which makes a vertex cut fit for training.

use gnarl_common::rng::Key;
use gnarl_graph::MemoryEdges;
use gnarl_partition::vertex_cut::{Owner, PartSets, Replicas, by_name};
use gnarl_partition::{PartitionOptions, VertexPartitioner};

const NODES: u64 = 4000;

fn random_edges() -> MemoryEdges {
    let key = Key::new(5);
    let ends = |i: u64| (key.with(i).below(0, NODES), key.with(i).below(1, NODES));
    MemoryEdges::new(NODES, (0..12_000).map(ends)).unwrap()
}

fn options(seed: u64, balance: f64) -> PartitionOptions {
    PartitionOptions { parts: 6, seed, balance, ..Default::default() }
}

/// Who holds each node, and who owns it.
fn owned(edges: &MemoryEdges, options: &PartitionOptions) -> (PartSets, Vec<u16>) {
    let mut replicas = Replicas::new(NODES, options.parts);
    let dbh = || by_name("dbh").unwrap();
    dbh().partition(&mut edges.clone(), options, &mut replicas).unwrap();
    let owners = Owner(dbh()).partition(&mut edges.clone(), options).unwrap();
    (replicas.sets().clone(), owners.of)
}

#[test]
fn owners_are_drawn_evenly_among_holders() {
    // So much room that no draw is turned down.
    let (sets, of) = owned(&random_edges(), &options(1, 6.0));
    let mut drawn = [[0u64; 6]; 7];
    for (v, &owner) in (0..).zip(&of) {
        let holders: Vec<usize> = sets.parts(v).collect();
        if holders.is_empty() {
            continue;
        }
        let at = holders.iter().position(|&p| p == owner as usize);
        drawn[holders.len()][at.expect("an owner holds the node")] += 1;
    }
    for holders in 2..=4 {
        let counts = &drawn[holders][..holders];
        let mean = counts.iter().sum::<u64>() as f64 / holders as f64;
        assert!(mean > 100.0, "{drawn:?}");
        // χ² with `holders − 1` degrees of freedom stays below this in all but 1 of 10,000 draws.
        let chi: f64 = counts.iter().map(|&c| (c as f64 - mean).powi(2) / mean).sum();
        assert!(chi < 21.1, "{holders} holders: {counts:?}");
    }
}

#[test]
fn the_draw_follows_the_seed() {
    let edges = random_edges();
    let of = |seed| owned(&edges, &options(seed, 1.05)).1;
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn full_parts_pass_nodes_on_and_isolated_nodes_fill_up() {
    // A clique of few nodes with an edge, and many without.
    let clique = (0..300u64).flat_map(|u| [(u, (u + 1) % 300), (u, (u + 7) % 300)]);
    let edges = MemoryEdges::new(NODES, clique).unwrap();
    let (sets, of) = owned(&edges, &options(3, 1.05));
    let mut sizes = [0u64; 6];
    of.iter().for_each(|&p| sizes[p as usize] += 1);
    assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
    assert!((0..300).all(|v| sets.contains(v, of[v as usize] as usize)));

    let (_, of) = owned(&random_edges(), &options(3, 1.05));
    let mut sizes = [0u64; 6];
    of.iter().for_each(|&p| sizes[p as usize] += 1);
    assert!(*sizes.iter().max().unwrap() as f64 <= 1.06 * NODES as f64 / 6.0, "{sizes:?}");
}
