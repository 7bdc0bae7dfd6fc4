//! What the temporal sampler promises: the right edges, evenly drawn, and nothing of the future.

use std::path::Path;

use gnarl_common::rng::Key;
use gnarl_common::{Element, Kind};
use gnarl_graph::{Csc, Dataset, DatasetWriter, IdWidth, Triple};
use gnarl_partition::{PartLayout, PartitionConfig, Parts, partition_dataset};
use gnarl_sample::{
    SampleGraph, Sampler, Scratch, TemporalBatch, TemporalRule, TemporalSampler, UniformSampler,
};
use proptest::prelude::*;

const RULES: [TemporalRule; 2] = [TemporalRule::Recent, TemporalRule::Uniform];

/// Edges in the order of lists, and the time of each.
fn graph(nodes: usize, edges: &[(u32, u32, i64)]) -> SampleGraph {
    let mut edges = edges.to_vec();
    edges.sort_by_key(|&(src, dst, _)| (dst, src));
    let ends: Vec<_> = edges.iter().map(|&(src, dst, _)| (src, dst)).collect();
    let times: Vec<i64> = edges.iter().map(|&(_, _, time)| time).collect();
    let graph = SampleGraph::new(Csc::from_edges(nodes, &ends)).unwrap();
    graph.with_times(times.into()).unwrap()
}

fn sample(
    graph: &SampleGraph,
    rule: TemporalRule,
    fanouts: &[i64],
    seeds: (&[u32], &[i64]),
    key: Key,
) -> TemporalBatch {
    let sampler = TemporalSampler::new(graph, fanouts, rule).unwrap();
    sampler.sample_at(seeds.0, seeds.1, key, &mut Scratch::new()).unwrap()
}

/// Source, time of the edge, and time of the source, for each edge of destination `dst` of a block.
fn edges(found: &TemporalBatch, block: usize, dst: usize) -> Vec<(u32, i64, i64)> {
    let b = &found.batch.blocks[block];
    let times = &found.edge_times[block][b.indptr()[dst] as usize..];
    let pairs = b.sources(dst).iter().zip(times);
    pairs
        .map(|(&s, &time)| (found.batch.input_nodes[s as usize], time, found.times[s as usize]))
        .collect()
}

/// All edges of `node` no later than `time`, the latest first.
fn permitted(all: &[(u32, u32, i64)], node: u32, time: i64) -> Vec<(u32, i64)> {
    let mut list: Vec<_> = (all.iter())
        .filter(|&&(_, dst, at)| dst == node && at <= time)
        .map(|&(src, _, at)| (src, at))
        .collect();
    list.sort_by_key(|&(_, at)| std::cmp::Reverse(at));
    list
}

type Edges = Vec<(u32, u32, i64)>;

fn inputs() -> impl Strategy<Value = (Edges, Vec<i64>, Vec<(u32, i64)>, u64)> {
    let edge = (0u32..30, 0u32..30, -20i64..20);
    let fanout = prop_oneof![Just(-1i64), 1i64..8];
    (
        prop::collection::vec(edge, 0..400),
        prop::collection::vec(fanout, 1..4),
        prop::collection::vec((0u32..30, -22i64..22), 1..10),
        any::<u64>(),
    )
}

proptest! {
    /// Against a search of all edges: counts, times, degrees, and that nothing is taken twice.
    #[test]
    fn samples_are_of_the_permitted_edges((all, fanouts, seeds, seed) in inputs()) {
        let graph = graph(30, &all);
        let (nodes, times): (Vec<_>, Vec<_>) = seeds.into_iter().unzip();
        for rule in RULES {
            let found = sample(&graph, rule, &fanouts, (&nodes, &times), Key::new(seed));
            for ((&row, &node), &time) in found.batch.targets.iter().zip(&nodes).zip(&times) {
                prop_assert_eq!(found.batch.input_nodes[row as usize], node);
                prop_assert_eq!(found.times[row as usize], time);
            }
            let pairs = found.batch.input_nodes.iter().zip(&found.times);
            let distinct: std::collections::HashSet<_> = pairs.clone().collect();
            prop_assert_eq!(distinct.len(), found.times.len());
            for ((&node, &time), &degree) in pairs.zip(found.batch.blocks[0].degrees()) {
                prop_assert_eq!(permitted(&all, node, time).len(), degree as usize);
            }
            for (block, &fanout) in fanouts.iter().rev().enumerate() {
                for dst in 0..found.batch.blocks[block].num_dst() {
                    let time = found.times[dst];
                    let mut left = permitted(&all, found.batch.input_nodes[dst], time);
                    let latest: Vec<i64> = left.iter().map(|&(_, at)| at).collect();
                    let wanted = usize::try_from(fanout).unwrap_or(usize::MAX).min(left.len());
                    let edges = edges(&found, block, dst);
                    prop_assert_eq!(edges.len(), wanted);
                    prop_assert!(edges.is_sorted_by_key(|&(_, at, _)| at));
                    if rule == TemporalRule::Recent {
                        let taken: Vec<i64> = edges.iter().rev().map(|&(_, at, _)| at).collect();
                        prop_assert_eq!(&taken[..], &latest[..wanted]);
                    }
                    for (src, at, inherited) in edges {
                        prop_assert_eq!(inherited, time);
                        let found = left.iter().position(|&edge| edge == (src, at));
                        prop_assert!(found.is_some(), "no edge left from {} at {}", src, at);
                        left.remove(found.unwrap());
                    }
                }
            }
        }
    }

    /// The batch is that of a graph in which later edges do not exist.
    #[test]
    fn the_future_does_not_leak((all, fanouts, seeds, seed) in inputs(), now in -22i64..22) {
        let past: Vec<_> = all.iter().copied().filter(|&(_, _, time)| time <= now).collect();
        let (nodes, key) = (seeds.iter().map(|s| s.0).collect::<Vec<_>>(), Key::new(seed));
        let times = vec![now; nodes.len()];
        for rule in RULES {
            let draw = |all: &[_]| {
                let found = sample(&graph(30, all), rule, &fanouts, (&nodes, &times), key);
                let blocks: Vec<_> = (found.batch.blocks.iter())
                    .map(|b| (b.indptr().to_vec(), b.indices().to_vec(), b.degrees().to_vec()))
                    .collect();
                (found.batch.input_nodes, found.times, found.edge_times, blocks)
            };
            prop_assert_eq!(draw(&all), draw(&past));
        }
    }

    /// What a seed gets does not depend on the other seeds.
    #[test]
    fn seeds_are_independent((all, fanouts, seeds, seed) in inputs()) {
        let (graph, key) = (graph(30, &all), Key::new(seed));
        let (nodes, times): (Vec<_>, Vec<_>) = seeds.into_iter().unzip();
        for rule in RULES {
            let together = sample(&graph, rule, &fanouts, (&nodes, &times), key);
            for (i, &row) in together.batch.targets.iter().enumerate() {
                let alone = sample(&graph, rule, &fanouts, (&nodes[i..=i], &times[i..=i]), key);
                let last = fanouts.len() - 1;
                prop_assert_eq!(edges(&together, last, row as usize), edges(&alone, last, 0));
            }
        }
    }
}

/// Chi-square of how often each of `counts` was drawn, narrowed as a draw without replacement is.
fn chi(counts: &[f64]) -> f64 {
    let expected = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter().map(|c| (c - expected).powi(2) / expected).sum()
}

#[test]
fn each_permitted_edge_is_equally_likely() {
    // Edge from node v at time 301 - v: at 300 all but that of node 0, at 200 those from 101 on.
    let all: Vec<_> = (0..301).map(|v| (v, 0, 301 - i64::from(v))).collect();
    let graph = graph(301, &all);
    let sampler = TemporalSampler::new(&graph, &[15], TemporalRule::Uniform).unwrap();
    let (mut counts, mut scratch) = (vec![0f64; 301], Scratch::new());
    for epoch in 0..20_000 {
        let found = sampler.sample_at(&[0], &[200], Key::new(4).with(epoch), &mut scratch).unwrap();
        for (src, _, _) in edges(&found, 0, 0) {
            counts[src as usize] += 1.0;
        }
    }
    assert_eq!(counts[..101], [0.0; 101]);
    let chi = chi(&counts[101..]);
    assert!(chi < 267.6, "chi-square {chi} exceeds the 0.1 % point of 199 degrees of freedom");
}

#[test]
fn ties_for_the_last_places_are_decided_evenly() {
    let all: Vec<_> = (1..31).map(|v| (v, 0, if v % 10 == 0 { 8 } else { 7 })).collect();
    let graph = graph(31, &all);
    let sampler = TemporalSampler::new(&graph, &[5], TemporalRule::Recent).unwrap();
    let (mut counts, mut scratch) = (vec![0f64; 31], Scratch::new());
    for epoch in 0..20_000 {
        let found = sampler.sample_at(&[0], &[9], Key::new(6).with(epoch), &mut scratch).unwrap();
        for (src, _, _) in edges(&found, 0, 0) {
            counts[src as usize] += 1.0;
        }
    }
    assert!((1..4).all(|i| counts[10 * i] == 20_000.0), "the latest are always taken");
    let tied: Vec<f64> = (1..31).filter(|v| v % 10 != 0).map(|v| counts[v]).collect();
    let chi = chi(&tied);
    assert!(chi < 54.1, "chi-square {chi} exceeds the 0.1 % point of 26 degrees of freedom");
}

#[test]
fn a_node_is_there_once_for_each_time() {
    let graph = graph(3, &[(2, 0, 1), (2, 1, 1), (1, 2, 0), (0, 2, 3)]);
    let (seeds, times) = ([0, 1, 0, 0], [5, 2, 2, 5]);
    let found = sample(&graph, TemporalRule::Recent, &[1, -1], (&seeds, &times), Key::new(1));
    assert_eq!(found.batch.targets, [0, 1, 2, 0]);
    assert_eq!(found.batch.input_nodes, [0, 1, 0, 2, 2, 1]);
    assert_eq!(found.times, [5, 2, 2, 5, 2, 5]);
    assert_eq!(found.batch.blocks[0].degrees(), [1, 1, 1, 2, 1, 1]);
}

#[test]
fn what_cannot_be_sampled_is_told() {
    let plain = SampleGraph::new(Csc::from_edges(2, &[(1, 0)])).unwrap();
    let error = TemporalSampler::new(&plain, &[1], TemporalRule::Recent).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    assert!(
        error.to_string().contains(
            "requires times of edges or nodes, which the graph lacks\nhint: import it with a column"
        ),
        "{error}"
    );
    let (short, long) = (vec![].into(), vec![1, 2].into());
    assert!(plain.clone().with_times(short).is_err());
    assert!(plain.clone().with_times(long).is_err());

    let timed = plain.with_times(vec![4].into()).unwrap();
    let make = |fanouts: &[i64]| TemporalSampler::new(&timed, fanouts, TemporalRule::Uniform);
    assert_eq!(make(&[0]).unwrap_err().kind(), Kind::Usage);
    let (sampler, mut scratch) = (make(&[1]).unwrap(), Scratch::new());
    let mut at = |seeds: &[u32], times: &[i64]| {
        sampler.sample_at(seeds, times, Key::new(1), &mut scratch).unwrap_err().to_string()
    };
    assert_eq!(at(&[0, 1], &[3]), "expected 2 times, one per seed; found 1");
    assert!(at(&[7], &[3]).starts_with("seed 7 is not one of the 2 nodes"));
    let error = sampler.sample(&[0], Key::new(1), &mut Scratch::new()).unwrap_err();
    assert!(error.to_string().contains("lacks the times of seeds"), "{error}");
    assert!(make(&[1]).unwrap().with_seed_times(vec![1].into()).is_err());
}

fn write<T: Element>(out: &Path, edges: &[(u64, u64)], time: impl Fn(usize) -> T) -> Dataset {
    let mut writer = DatasetWriter::create(out, IdWidth::U32).unwrap();
    writer.add_node_type("_N", 60);
    let mut list = writer.edge_writer(&Triple::plain(), None).unwrap();
    let mut times = writer.edge_column::<T>(&Triple::plain(), "time", &[]).unwrap();
    for (row, &(src, dst)) in edges.iter().enumerate() {
        list.push(&[src], &[dst]).unwrap();
        times.push(&[time(row)]).unwrap();
    }
    let mut columns = list.finish().unwrap();
    columns.push(times.finish().unwrap());
    writer.add_edge_type(Triple::plain(), columns);
    writer.finish(Default::default()).unwrap()
}

#[test]
fn times_come_from_the_dataset() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name| dir.path().join(name);
    let edges = [(3, 0), (1, 0), (2, 0)];
    let draw = |dataset: Dataset| {
        let graph = SampleGraph::open(&dataset).unwrap();
        let seeds = (&[0u32][..], &[5i64][..]);
        sample(&graph, TemporalRule::Recent, &[2], seeds, Key::new(1)).batch.input_nodes
    };
    assert_eq!(draw(write(&path("i64"), &edges, |row| row as i64 - 1)), [0, 1, 2]);
    assert_eq!(draw(write(&path("u64"), &edges, |row| 5 - row as u64)), [0, 1, 3]);
    assert_eq!(draw(write(&path("i32"), &edges, |row| 4 + row as i32)), [0, 3, 1]);
    let floats = SampleGraph::open(&write(&path("f32"), &edges, |row| row as f32)).unwrap();
    assert!(!floats.is_timed());
    let error = SampleGraph::open(&write(&path("big"), &edges, |row| u64::MAX - row as u64));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("row 0: the time exceeds 63 bits"), "{error}");
}

#[test]
fn a_part_draws_what_the_whole_graph_does() {
    let dir = tempfile::tempdir().unwrap();
    let key = Key::new(9);
    let edges: Vec<_> =
        (0..900).map(|i| (key.below(2 * i, 60), key.below(2 * i + 1, 60))).collect();
    let dataset =
        write(&dir.path().join("whole"), &edges, |row| key.with(1).below(row as u64, 9) as i64);
    let config = PartitionConfig {
        algorithm: "random".into(),
        parts: Parts::Count(3),
        layout: PartLayout::EdgeCut,
        ..Default::default()
    };
    let parts = partition_dataset(&dataset, &config, &dir.path().join("parts")).unwrap().0;
    let whole = SampleGraph::open(&dataset).unwrap();
    for part in 0..3 {
        let part = SampleGraph::open(&parts.part(part).unwrap()).unwrap();
        for (rule, seed) in
            RULES.into_iter().flat_map(|rule| (0..part.core() as u32).map(move |v| (rule, v)))
        {
            let draw = |graph: &SampleGraph, seed| {
                let found = sample(graph, rule, &[4], (&[seed], &[5]), Key::new(3));
                (found.batch.blocks[0].ids().to_vec(), found.edge_times)
            };
            assert_eq!(draw(&part, seed), draw(&whole, part.id(seed) as u32));
        }
    }
}

/// The hops of a uniform sample without times are those of the same graph at the end of time, but
/// for the draw.
#[test]
fn at_the_end_of_time_everything_is_permitted() {
    let all: Vec<_> = (0..200u32).map(|i| (i % 17, i * 7 % 19, i64::from(i))).collect();
    let graph = graph(20, &all);
    let found = sample(&graph, TemporalRule::Uniform, &[-1, -1], (&[3], &[i64::MAX]), Key::new(1));
    let full = UniformSampler::new(&graph, &[-1, -1]).unwrap();
    let full = full.sample(&[3], Key::new(1), &mut Scratch::new()).unwrap();
    assert_eq!(found.batch.num_edges(), full.num_edges());
    let sorted = |mut nodes: Vec<u32>| {
        nodes.sort_unstable();
        nodes
    };
    assert_eq!(sorted(found.batch.input_nodes), sorted(full.input_nodes));
}
