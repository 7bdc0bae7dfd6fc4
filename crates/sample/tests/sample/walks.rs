//! What walks promise: steps of the right probabilities, by key and number alone.

use std::collections::HashMap;

use gnarl_common::Kind;
use gnarl_common::rng::Key;
use gnarl_graph::{Csc, Triple};
use gnarl_sample::{
    HeteroSampleGraph, MetaPathWalk, RandomWalk, SampleGraph, Sampler, Scratch, WalkNeighbors,
};
use proptest::prelude::*;

fn graph(nodes: usize, edges: &[(u32, u32)]) -> SampleGraph {
    SampleGraph::new(Csc::from_edges(nodes, edges)).unwrap()
}

/// Both directions of each edge.
fn undirected(nodes: usize, edges: &[(u32, u32)]) -> SampleGraph {
    graph(nodes, &edges.iter().flat_map(|&(u, v)| [(u, v), (v, u)]).collect::<Vec<_>>())
}

fn walk(walk: &RandomWalk, start: u32, number: u64, key: Key) -> Vec<u32> {
    let mut nodes = Vec::new();
    walk.walk(start, number, key, &mut nodes).unwrap();
    nodes
}

/// Chi-square of counts against probabilities.
fn chi(counts: &[f64], likely: &[f64]) -> f64 {
    let total: f64 = counts.iter().sum();
    counts.iter().zip(likely).map(|(c, p)| (c - p * total).powi(2) / (p * total)).sum()
}

#[test]
fn steps_are_uniform_over_edges() {
    // From 0 to each of 1 to 9 once, to 10 twice, and back.
    let out: Vec<_> = (1..11).map(|v| (v, 0)).chain([(10, 0)]).collect();
    let back = (1..11).map(|v| (0, v));
    let graph = graph(11, &out.iter().copied().chain(back).collect::<Vec<_>>());
    let walks = RandomWalk::new(&graph, 3).unwrap();
    let mut counts = vec![vec![0f64; 10]; 2];
    for number in 0..30_000 {
        let [0, first, 0, second] = walk(&walks, 0, number, Key::new(2))[..] else {
            panic!("star")
        };
        counts[0][first as usize - 1] += 1.0;
        counts[1][second as usize - 1] += 1.0;
    }
    let mut likely = vec![1.0 / 11.0; 10];
    likely[9] *= 2.0;
    for counts in counts {
        let chi = chi(&counts, &likely);
        assert!(chi < 27.9, "chi-square {chi} exceeds the 0.1 % point of 9 degrees of freedom");
    }
}

/// From 0 by 1: back to 0, to its neighbor 2, or away to 3 or 4.
#[test]
fn biased_steps_have_the_probabilities_of_node2vec() {
    let graph = undirected(5, &[(0, 1), (0, 2), (1, 2), (1, 3), (1, 4)]);
    for (p, q) in [(0.25, 4.0), (4.0, 0.5), (1.0, 1.0), (2.0, 100.0)] {
        let walks = RandomWalk::new(&graph, 2).unwrap().with_bias(p, q).unwrap();
        let mut counts = vec![0f64; 4];
        for number in 0..60_000 {
            if let [0, 1, next] = walk(&walks, 0, number, Key::new(7))[..] {
                counts[[0, 9, 1, 2, 3][next as usize]] += 1.0;
            }
        }
        let weights = [1.0 / p, 1.0, 1.0 / q, 1.0 / q];
        let likely = weights.map(|w| w / weights.iter().sum::<f64>());
        let chi = chi(&counts, &likely);
        assert!(chi < 16.3, "p {p}, q {q}: chi-square {chi} exceeds the 0.1 % point of 3 degrees");
    }
}

#[test]
fn steps_return_to_the_start_as_often_as_asked() {
    // A long cycle, so that only a restart leads to node 0.
    let cycle: Vec<_> = (0..1000).map(|v| ((v + 1) % 1000, v)).collect();
    let walks = RandomWalk::new(&graph(1000, &cycle), 50).unwrap().with_restart(0.3).unwrap();
    let (mut restarts, number) = (0.0, 400);
    for number in 0..number {
        let nodes = walk(&walks, 0, number, Key::new(5));
        assert_eq!(nodes.len(), 51);
        assert!(nodes.windows(2).all(|w| w[1] == 0 || w[1] == w[0] + 1));
        restarts += nodes[1..].iter().filter(|&&v| v == 0).count() as f64;
    }
    let steps = 50.0 * number as f64;
    let deviation = (steps * 0.3 * 0.7).sqrt();
    assert!((restarts - 0.3 * steps).abs() < 3.3 * deviation, "{restarts} of {steps}");
}

#[test]
fn dead_ends_end_a_walk_or_restart_it() {
    // 0 leads to 1, which leads nowhere; so does 2.
    let graph = graph(3, &[(1, 0)]);
    let once = RandomWalk::new(&graph, 5).unwrap();
    let again = once.clone().with_restart(0.01).unwrap();
    for number in 0..20 {
        assert_eq!(walk(&once, 0, number, Key::new(1)), [0, 1]);
        assert_eq!(walk(&once, 2, number, Key::new(1)), [2]);
        assert_eq!(walk(&again, 2, number, Key::new(1)), [2]);
        let nodes = walk(&again, 0, number, Key::new(1));
        assert_eq!(nodes.len(), 6);
        assert!(nodes.windows(2).all(|w| w != [1, 1]));
    }
}

type Edges = Vec<(u32, u32)>;

fn inputs() -> impl Strategy<Value = (Edges, f64, Option<(f64, f64)>, u64)> {
    let restart = prop_oneof![Just(0.0), 0.0..0.9f64];
    let bias = prop::option::of((0.05..20.0f64, 0.05..20.0f64));
    (prop::collection::vec((0u32..30, 0u32..30), 0..200), restart, bias, any::<u64>())
}

fn walks_of(graph: &SampleGraph, restart: f64, bias: Option<(f64, f64)>) -> RandomWalk {
    let walks = RandomWalk::new(graph, 6).unwrap().with_restart(restart).unwrap();
    match bias {
        Some((p, q)) => walks.with_bias(p, q).unwrap(),
        None => walks,
    }
}

proptest! {
    #[test]
    fn walks_follow_edges_and_ignore_labels((edges, restart, bias, seed) in inputs()) {
        let (whole, key) = (graph(30, &edges), Key::new(seed));
        let walks = walks_of(&whole, restart, bias);
        // A copy in which node v is called 29 - v, with lists in the order of dataset ids.
        let renamed: Vec<_> = edges.iter().map(|&(u, v)| (29 - u, 29 - v)).collect();
        let mut csc = Csc::from_edges(30, &renamed);
        let turned = |v| csc.sources(v).iter().rev().copied();
        csc.indices = (0..30).flat_map(turned).collect::<Vec<_>>().into();
        let ids: Vec<u64> = (0..30).rev().collect();
        let copy = SampleGraph::with_part(csc, ids.into(), None, 30).unwrap();
        copy.verify().unwrap();
        let of_copy = walks_of(&copy, restart, bias);
        for number in 0..30 {
            let start = number as u32;
            let nodes = walk(&walks, start, number, key);
            for pair in nodes.windows(2) {
                let edge = whole.csc().sources(pair[0]).contains(&pair[1]);
                prop_assert!(edge || restart > 0.0 && pair[1] == start);
            }
            let last = nodes[nodes.len() - 1];
            let dead = whole.degree(if restart > 0.0 { start } else { last }) == 0;
            prop_assert!(nodes.len() == 7 || dead, "stopped at {} of {:?}", last, nodes);
            let copied = walk(&of_copy, 29 - start, number, key);
            prop_assert_eq!(copied.iter().map(|v| 29 - v).collect::<Vec<_>>(), nodes);
        }
    }

    /// Against counts of the walks that the documentation names.
    #[test]
    fn neighbors_are_the_most_visited((edges, restart, bias, seed) in inputs()) {
        let (graph, key) = (graph(30, &edges), Key::new(seed));
        let walks = walks_of(&graph, restart, bias);
        let sampler = WalkNeighbors::new(walks.clone(), 12, &[3, -1]).unwrap();
        let batch = sampler.sample(&[4, 0, 17], key, &mut Scratch::new()).unwrap();
        for (block, fanout) in batch.blocks.iter().zip([usize::MAX, 3]) {
            for dst in 0..block.num_dst() {
                let node = batch.input_nodes[dst];
                let mut visits = HashMap::new();
                for visited in (0..12).flat_map(|i| walk(&walks, node, i, key.with(node.into()))) {
                    *visits.entry(visited).or_insert(0u32) += 1;
                }
                visits.remove(&node);
                let first = block.indptr()[dst] as usize;
                let weights = &block.weights().unwrap()[first..block.indptr()[dst + 1] as usize];
                for (&source, &weight) in block.sources(dst).iter().zip(weights) {
                    let source = batch.input_nodes[source as usize];
                    prop_assert_eq!(visits.get(&source).copied().unwrap_or(0) as f32, weight);
                }
                let mut counts: Vec<_> = visits.into_values().map(|n| n as f32).collect();
                counts.sort_by(|a, b| b.total_cmp(a));
                counts.truncate(fanout);
                prop_assert_eq!(weights, &counts[..]);
            }
        }
    }
}

#[test]
fn ties_between_visits_are_decided_by_chance() {
    let graph = graph(9, &(1..9).map(|v| (v, 0)).collect::<Vec<_>>());
    let mut counts = vec![0f64; 8];
    for epoch in 0..8000 {
        let walks = RandomWalk::new(&graph, 1).unwrap();
        let sampler = WalkNeighbors::new(walks, 2, &[1]).unwrap();
        let key = Key::new(3).with(epoch);
        let batch = sampler.sample(&[0], key, &mut Scratch::new()).unwrap();
        counts[batch.input_nodes[1] as usize - 1] += 1.0;
    }
    let chi = chi(&counts, &[0.125; 8]);
    assert!(chi < 24.3, "chi-square {chi} exceeds the 0.1 % point of 7 degrees of freedom");
}

fn triple(name: &str) -> Triple {
    name.parse().unwrap()
}

/// Users 0 to 19, items 0 to 9 and tags 0 to 2.
fn typed() -> HeteroSampleGraph {
    let key = Key::new(12);
    let edges = |k: u64, src: u64, dst: u64| -> Vec<(u32, u32)> {
        let end = |c, n| key.with(k).below(c, n) as u32;
        (0..60).map(|i| (end(2 * i, src), end(2 * i + 1, dst))).collect()
    };
    let graph = HeteroSampleGraph::new().with_nodes("user", 20).unwrap();
    let graph = graph.with_nodes("item", 10).unwrap().with_nodes("tag", 3).unwrap();
    let graph = graph
        .with_edges(&triple("item:rated_by:user"), Csc::from_edges(20, &edges(0, 10, 19)))
        .unwrap();
    let graph =
        graph.with_edges(&triple("tag:marks:item"), Csc::from_edges(10, &edges(1, 3, 10))).unwrap();
    graph.with_edges(&triple("user:rates:item"), Csc::from_edges(10, &edges(2, 20, 9))).unwrap()
}

#[test]
fn meta_paths_lead_over_their_edge_types() {
    let (graph, key) = (typed(), Key::new(4));
    let path = [triple("item:rated_by:user"), triple("user:rates:item")];
    let walks = MetaPathWalk::new(&graph, &path, 5).unwrap();
    assert_eq!(walks.node_types(), [0, 1, 0, 1, 0, 1]);
    let numbers = [0, 2];
    for (start, number) in (0..20).flat_map(|start| (0..10).map(move |n| (start, n))) {
        let (mut nodes, mut again) = (Vec::new(), Vec::new());
        walks.walk(start, number, key, &mut nodes).unwrap();
        walks.walk(start, number, key, &mut again).unwrap();
        assert_eq!(nodes, again);
        assert_eq!(nodes[0], start);
        for (step, pair) in nodes.windows(2).enumerate() {
            assert!(graph.csc(numbers[step % 2]).sources(pair[0]).contains(&pair[1]));
        }
        let next = numbers[(nodes.len() - 1) % 2];
        let last = nodes[nodes.len() - 1];
        assert!(nodes.len() == 6 || graph.csc(next).degree(last) == 0);
    }
}

#[test]
fn what_cannot_be_walked_is_told() {
    let graph = graph(3, &[(1, 0)]);
    let make = || RandomWalk::new(&graph, 2).unwrap();
    let text = |result: gnarl_common::Result<RandomWalk>| {
        let error = result.map(drop).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        error.to_string()
    };
    assert_eq!(text(RandomWalk::new(&graph, 0)), "a random walk requires at least one step");
    assert!(text(make().with_restart(1.0)).contains("hint: it must be at least 0 and below 1"));
    assert!(text(make().with_restart(f64::NAN)).contains("NaN"));
    assert!(text(make().with_bias(1.0, 0.0)).starts_with("invalid node2vec q '0'"));
    let error = make().walk(3, 0, Key::new(1), &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(error, "start 3 is not one of 3 nodes");
    assert!(WalkNeighbors::new(make(), 0, &[1]).is_err());
    assert!(WalkNeighbors::new(make(), 1, &[0]).is_err());

    let make = |path: &[&str], length| {
        let path: Vec<_> = path.iter().map(|name| triple(name)).collect();
        MetaPathWalk::new(&typed(), &path, length).map(drop)
    };
    make(&["tag:marks:item"], 1).unwrap();
    make(&["item:rated_by:user", "tag:marks:item"], 2).unwrap();
    for (path, length, text) in [
        (&[][..], 1, "requires at least one edge type"),
        (&["tag:marks:item"], 0, "and one step"),
        (
            &["tag:marks:item"],
            2,
            "tag:marks:item leads to 'tag' nodes, but tag:marks:item starts from",
        ),
        (&["item:rated_by:user", "item:rated_by:user"], 2, "hint: steps lead from"),
        (&["item:rated:user"], 1, "unknown edge type 'item:rated:user'"),
    ] {
        let error = make(path, length).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains(text), "{error}");
    }
    let walks = MetaPathWalk::new(&typed(), &[triple("tag:marks:item")], 1).unwrap();
    let error = walks.walk(10, 0, Key::new(1), &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(error, "start 10 is not one of the 10 nodes of type 'item'");
}
