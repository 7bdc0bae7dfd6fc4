//! What neighbor samplers promise: counts, uniformity, independence of labels and parts.

use gnarl_common::rng::Key;
use gnarl_common::{Buf, Kind};
use gnarl_graph::Csc;
use gnarl_graph::blocks::MiniBatch;
use gnarl_sample::{
    ExactSampler, LaborSampler, SampleGraph, Sampler, Scratch, UniformSampler, WeightedSampler,
};
use proptest::prelude::*;

fn graph(nodes: usize, edges: &[(u32, u32)]) -> SampleGraph {
    SampleGraph::new(Csc::from_edges(nodes, edges)).unwrap()
}

/// Those that draw uniformly.
fn samplers(graph: &SampleGraph, fanouts: &[i64]) -> [Box<dyn Sampler>; 3] {
    [
        Box::new(UniformSampler::new(graph, fanouts).unwrap()),
        Box::new(LaborSampler::new(graph, fanouts).unwrap()),
        Box::new(ExactSampler::new(graph, fanouts).unwrap()),
    ]
}

/// A random weight for each edge, alike for edges with the same ends.
fn weights(graph: &SampleGraph) -> Buf<f32> {
    let of_list = |dst: u32| {
        let weight = move |&src: &u32| Key::new(4).with(dst.into()).unit(src.into()) as f32 + 0.1;
        graph.csc().sources(dst).iter().map(weight)
    };
    (0..graph.num_nodes() as u32).flat_map(of_list).collect::<Vec<f32>>().into()
}

fn sample(sampler: &dyn Sampler, seeds: &[u32], key: Key) -> MiniBatch {
    sampler.sample(seeds, key, &mut Scratch::new()).unwrap()
}

/// A copy with node `v` renamed `names[v]`, lists still in the order of dataset ids.
fn relabelled(graph: &SampleGraph, names: &[u32]) -> SampleGraph {
    let mut ids = vec![0u64; names.len()];
    for (node, &name) in names.iter().enumerate() {
        ids[name as usize] = node as u64;
    }
    let (mut indptr, mut indices, mut rows) = (vec![0u64], Vec::new(), Vec::new());
    for &node in &ids {
        rows.extend(graph.csc().indptr.get(node)..graph.csc().indptr.get(node + 1));
        indices.extend(graph.csc().sources(node as u32).iter().map(|&s| names[s as usize]));
        indptr.push(indices.len() as u64);
    }
    let csc = Csc { indptr: indptr.into(), indices: indices.into(), edge: Some(rows.into()) };
    SampleGraph::with_part(csc, ids.into(), None, names.len()).unwrap()
}

/// Dataset ids of each block's edges, in order.
fn edges(batch: &MiniBatch) -> Vec<Vec<(u64, u64)>> {
    let of = |block: &gnarl_graph::blocks::Block| {
        (0..block.num_dst())
            .flat_map(|d| block.sources(d).iter().map(move |&s| (d, s)))
            .map(|(d, s)| (block.ids()[s as usize], block.ids()[d]))
            .collect()
    };
    batch.blocks.iter().map(|b| of(b)).collect()
}

#[test]
fn each_neighbor_is_equally_likely() {
    let star: Vec<_> = (1..301).map(|v| (v, 0)).collect();
    let graph = graph(301, &star);
    let (draws, fanout) = (20_000u64, 15);
    for sampler in samplers(&graph, &[fanout]) {
        let mut counts = vec![0f64; 301];
        for epoch in 0..draws {
            let batch = sample(&*sampler, &[0], Key::new(8).with(epoch));
            assert_eq!(batch.num_edges(), 15);
            for &node in &batch.input_nodes[1..] {
                counts[node as usize] += 1.0;
            }
        }
        let expected = (draws * fanout as u64) as f64 / 300.0;
        let chi: f64 = counts[1..].iter().map(|c| (c - expected).powi(2) / expected).sum();
        // Drawing without replacement narrows the statistic by (300 - 15) / 299.
        let name = sampler.name();
        assert!(chi < 381.5, "{name}: chi-square {chi} exceeds the 0.1 % point of 299 degrees");
    }
}

/// Of weights 1, 2, 3 and 4 two are drawn one after the other: the pair {i, j} has the probability
/// `w_i/10 · w_j/(10 - w_i) + w_j/10 · w_i/(10 - w_j)`.
#[test]
fn weighted_pairs_have_the_probabilities_of_successive_draws() {
    let graph = graph(5, &[(1, 0), (2, 0), (3, 0), (4, 0)]);
    let graph = graph.with_weights(vec![1.0, 2.0, 3.0, 4.0].into()).unwrap();
    let sampler = WeightedSampler::new(&graph, &[2]).unwrap();
    let (draws, mut counts) = (300_000u64, [[0f64; 5]; 5]);
    for epoch in 0..draws {
        let batch = sample(&sampler, &[0], Key::new(6).with(epoch));
        let [a, b] = batch.input_nodes[1..] else { panic!("two neighbors") };
        counts[a as usize][b as usize] += 1.0;
    }
    let mut chi = 0.0;
    for (i, j) in (1..5).flat_map(|i| (i + 1..5).map(move |j| (i, j))) {
        let (a, b) = (i as f64, j as f64);
        let likely = a / 10.0 * b / (10.0 - a) + b / 10.0 * a / (10.0 - b);
        let expected = likely * draws as f64;
        chi += (counts[i][j] - expected).powi(2) / expected;
    }
    assert!(chi < 20.5, "chi-square {chi} exceeds the 0.1 % point of 5 degrees of freedom");
}

/// With a fan-out of 1 each of 300 neighbors is drawn in proportion to its weight.
#[test]
fn weighted_draws_follow_the_weights() {
    let star: Vec<_> = (1..301).map(|v| (v, 0)).collect();
    let weights: Vec<f32> = (1..301).map(|v| (v % 7 + 1) as f32).collect();
    let total: f32 = weights.iter().sum();
    let graph = graph(301, &star).with_weights(weights.clone().into()).unwrap();
    let sampler = WeightedSampler::new(&graph, &[1]).unwrap();
    let (draws, mut counts) = (60_000u64, vec![0f64; 301]);
    for epoch in 0..draws {
        let batch = sample(&sampler, &[0], Key::new(5).with(epoch));
        counts[batch.input_nodes[1] as usize] += 1.0;
    }
    let chi: f64 = (weights.iter().zip(&counts[1..]))
        .map(|(w, count)| (f64::from(w / total) * draws as f64, count))
        .map(|(expected, count)| (count - expected).powi(2) / expected)
        .sum();
    assert!(chi < 381.5, "chi-square {chi} exceeds the 0.1 % point of 299 degrees of freedom");
}

#[test]
fn edges_of_no_weight_come_last() {
    let graph = graph(7, &(1..7).map(|v| (v, 0)).collect::<Vec<_>>());
    let weights = vec![0.0, 1.0, f32::NAN, 1.0, 1e-30, -1.0];
    let graph = graph.with_weights(weights.into()).unwrap();
    for seed in 0..50 {
        let nodes = |fanout| {
            let sampler = WeightedSampler::new(&graph, &[fanout]).unwrap();
            sample(&sampler, &[0], Key::new(seed)).input_nodes
        };
        assert_eq!(nodes(3), [0, 2, 4, 5]);
        assert_eq!(nodes(4).len(), 5);
    }
}

/// Repeated edges are drawn as often as they are listed.
#[test]
fn equal_edges_are_drawn_independently() {
    let edges: Vec<_> = (0..40).map(|i| (1 + i / 10, 0)).collect();
    let graph = graph(5, &edges);
    let given = weights(&graph);
    let graph = graph.with_weights(given.into()).unwrap();
    let samplers: [Box<dyn Sampler>; 2] = [
        Box::new(ExactSampler::new(&graph, &[20]).unwrap()),
        Box::new(WeightedSampler::new(&graph, &[20]).unwrap()),
    ];
    for sampler in samplers {
        let batch = sample(&*sampler, &[0], Key::new(3));
        assert_eq!((batch.num_edges(), batch.input_nodes.len()), (20, 5), "{}", sampler.name());
    }
}

#[test]
fn repeated_seeds_share_a_row() {
    let chain = graph(3, &[(1, 0), (2, 1)]);
    for sampler in samplers(&chain, &[5]) {
        let batch = sample(&*sampler, &[1, 0, 1], Key::new(1));
        assert_eq!(batch.targets, [0, 1, 0]);
        assert_eq!(batch.input_nodes, [1, 0, 2]);
    }
}

#[test]
fn weights_follow_their_edges() {
    let csc = Csc::from_edges(50, &(0..50).map(|v| (v, 0)).collect::<Vec<_>>());
    let rows: Vec<u64> = (0..50).rev().collect();
    let csc = Csc { edge: Some(rows.into()), ..csc };
    let weights: Vec<f32> = (0..50).map(|row| (49 - row) as f32).collect();
    let graph = SampleGraph::new(csc).unwrap().with_weights(weights.into()).unwrap();
    for sampler in samplers(&graph, &[20]) {
        let batch = sample(&*sampler, &[0], Key::new(3));
        let block = &batch.blocks[0];
        for (&source, &weight) in block.indices().iter().zip(block.weights().unwrap()) {
            assert_eq!(batch.input_nodes[source as usize] as f32, weight);
        }
    }
}

#[test]
fn labor_agrees_on_common_neighbors() {
    let shared: Vec<_> = (0..4).flat_map(|dst| (4..104).map(move |src| (src, dst))).collect();
    let graph = graph(104, &shared);
    let [uniform, labor, _] = samplers(&graph, &[10]);
    let nodes = |s: &dyn Sampler| sample(s, &[0, 1, 2, 3], Key::new(2)).input_nodes.len();
    assert_eq!(nodes(&*labor), 4 + 10);
    assert!(nodes(&*uniform) > 4 + 20);
}

#[test]
fn wrong_input_is_an_error() {
    let kind = |r: gnarl_common::Result<MiniBatch>| r.unwrap_err().kind();
    let try_on = |graph: &SampleGraph, seed| {
        let [a, b, c] = samplers(graph, &[2])
            .map(|sampler| kind(sampler.sample(&[seed], Key::new(1), &mut Scratch::new())));
        assert_eq!((a, b), (b, c));
        a
    };
    let two = graph(2, &[(1, 0)]);
    for fanouts in [&[][..], &[0]] {
        assert_eq!(UniformSampler::new(&two, fanouts).unwrap_err().kind(), Kind::Usage);
        assert_eq!(LaborSampler::new(&two, fanouts).unwrap_err().kind(), Kind::Usage);
    }
    assert_eq!(try_on(&two, 2), Kind::InvalidInput);
    let unweighted = WeightedSampler::new(&two, &[1]).unwrap();
    let unweighted = unweighted.sample(&[0], Key::new(1), &mut Scratch::new());
    assert_eq!(kind(unweighted), Kind::Usage);
    let raw = |indptr: Vec<u64>, indices: Vec<u32>| {
        let csc = Csc { indptr: indptr.into(), indices: indices.into(), edge: None };
        SampleGraph::new(csc)
    };
    assert!(raw(vec![], vec![]).is_err());
    assert!(raw(vec![0, 2], vec![0]).is_err());
    assert_eq!(try_on(&raw(vec![0, 9, 1], vec![0]).unwrap(), 0), Kind::InvalidInput);
    assert_eq!(try_on(&raw(vec![0, 1], vec![7]).unwrap(), 0), Kind::InvalidInput);
    let part = SampleGraph::with_part(
        Csc::from_edges(2, &[(1, 0)]),
        vec![4u64, 9].into(),
        Some(vec![1, 5].into()),
        1,
    );
    assert_eq!(try_on(&part.unwrap(), 1), Kind::InvalidInput);
}

proptest! {
    #[test]
    fn counts_are_exact_and_labels_do_not_matter(
        edges_in in prop::collection::vec((0u32..40, 0u32..40), 0..600),
        fanouts in prop::collection::vec(prop_oneof![Just(-1i64), 1i64..12], 1..4),
        seeds in prop::collection::hash_set(0u32..40, 1..10),
        seed: u64,
    ) {
        let (whole, key) = (graph(40, &edges_in), Key::new(seed));
        let seeds: Vec<u32> = seeds.into_iter().collect();
        let mut names: Vec<u32> = (0..40).collect();
        key.with(7).shuffle(&mut names);
        let copy = relabelled(&whole, &names).with_weights(weights(&whole).into()).unwrap();
        copy.verify().unwrap();
        let given = weights(&whole);
        let whole = whole.with_weights(given.into()).unwrap();
        let renamed: Vec<u32> = seeds.iter().map(|&s| names[s as usize]).collect();
        let more: Box<dyn Sampler> = Box::new(WeightedSampler::new(&whole, &fanouts).unwrap());
        let same: Box<dyn Sampler> = Box::new(WeightedSampler::new(&copy, &fanouts).unwrap());
        let copies = samplers(&copy, &fanouts).into_iter().chain([same]);
        let all = samplers(&whole, &fanouts).into_iter().chain([more]);
        for (sampler, of_copy) in all.zip(copies) {
            let batch = sample(&*sampler, &seeds, key);
            for (block, &fanout) in batch.blocks.iter().rev().zip(&fanouts) {
                for dst in 0..block.num_dst() {
                    let degree = block.degrees()[dst] as usize;
                    let expected = if fanout < 0 { degree } else { degree.min(fanout as usize) };
                    prop_assert_eq!(block.sources(dst).len(), expected);
                }
            }
            prop_assert_eq!(edges(&batch), edges(&sample(&*of_copy, &renamed, key)));
        }
    }
}
