//! Neighborhoods by personalized PageRank against power iteration.

use gnarl_common::Kind;
use gnarl_common::rng::Key;
use gnarl_graph::Csc;
use gnarl_sample::{PprNeighbors, SampleGraph, Sampler, Scratch};
use proptest::prelude::*;

fn graph(nodes: usize, edges: &[(u32, u32)]) -> SampleGraph {
    SampleGraph::new(Csc::from_edges(nodes, edges)).unwrap()
}

/// The probability that a walk along in-neighbors from `start`, which ends with `teleport` at each step and at nodes without
/// in-neighbors, ends at each node.
fn exact(graph: &SampleGraph, start: u32, teleport: f64) -> Vec<f64> {
    let nodes = graph.num_nodes();
    let (mut at, mut ends) = (vec![0.0; nodes], vec![0.0; nodes]);
    at[start as usize] = 1.0;
    for _ in 0..400 {
        let mut next = vec![0.0; nodes];
        for node in 0..nodes as u32 {
            let here = at[node as usize];
            let sources = graph.sources(node).unwrap();
            let stays = if sources.is_empty() { here } else { teleport * here };
            ends[node as usize] += stays;
            sources.iter().for_each(|&s| next[s as usize] += (here - stays) / sources.len() as f64);
        }
        at = next;
    }
    ends
}

proptest! {
    #[test]
    fn weights_are_within_the_tolerance_of_page_rank(
        edges in prop::collection::vec((0u32..25, 0u32..25), 1..120),
        start in 0u32..25,
    ) {
        let graph = graph(25, &edges);
        let (teleport, tolerance) = (0.2, 1e-4);
        let sampler = PprNeighbors::new(&graph, (teleport, tolerance), &[-1]).unwrap();
        let batch = sampler.sample(&[start], Key::new(0), &mut Scratch::new()).unwrap();
        let expected = exact(&graph, start, teleport);
        let block = &batch.blocks[0];
        let weights = block.weights().unwrap();
        prop_assert!(weights.is_sorted_by(|a, b| a >= b));
        let mut found = [0.0; 25];
        for (&source, &weight) in block.sources(0).iter().zip(weights) {
            found[batch.input_nodes[source as usize] as usize] = f64::from(weight);
        }
        // What is left unpushed is at most the tolerance times the in-degree, at each node.
        let left: f64 = (0..25).map(|v| tolerance * f64::from(graph.degree(v).max(1))).sum();
        for node in (0..25).filter(|&node| node != start as usize) {
            prop_assert!(found[node] <= expected[node] + 1e-6);
            prop_assert!(found[node] >= expected[node] - left - 1e-6, "{node}: {} {}", found[node], expected[node]);
        }
    }
}

#[test]
fn the_heaviest_come_first_and_are_the_same_for_every_key() {
    let key = Key::new(2);
    let edges: Vec<(u32, u32)> = (0..3000)
        .map(|e| (key.below(2 * e, 300) as u32, key.below(2 * e + 1, 300) as u32))
        .collect();
    let graph = graph(300, &edges);
    let sampler = |fanouts: &[i64]| PprNeighbors::new(&graph, (0.15, 1e-5), fanouts).unwrap();
    let sample = |fanouts: &[i64], key| {
        sampler(fanouts).sample(&[7, 8], Key::new(key), &mut Scratch::new()).unwrap()
    };
    let (few, all) = (sample(&[5], 1), sample(&[-1], 2));
    for row in 0..2 {
        let ids = |batch: &gnarl_graph::blocks::MiniBatch| -> Vec<u32> {
            let sources = batch.blocks[0].sources(row).iter();
            sources.map(|&at| batch.input_nodes[at as usize]).collect()
        };
        assert_eq!(ids(&few), ids(&all)[..5]);
        assert!(ids(&all).len() > 50);
    }
}

#[test]
fn wrong_numbers_are_told() {
    let graph = graph(2, &[(0, 1)]);
    for numbers in [(0.0, 0.1), (1.0, 0.1), (0.1, 0.0), (0.1, f64::NAN)] {
        let error = PprNeighbors::new(&graph, numbers, &[2]).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains("above 0 and below 1"), "{error}");
    }
}
