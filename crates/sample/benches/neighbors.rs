//! Edges a second of the neighbor samplers, relabelling and node facts included, on one thread.
//! The generated graph is skewed as real ones are; its lists outgrow the caches.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gnarl_common::rng::Key;
use gnarl_graph::Csc;
use gnarl_sample::{
    ExactSampler, LaborSampler, SampleGraph, Sampler, Scratch, UniformSampler, WeightedSampler,
};

const NODES: usize = 1 << 20;
const EDGES: u64 = 16 << 20;

/// A symmetric graph whose edges prefer low ids: an end is the least of three uniform draws.
fn graph() -> SampleGraph {
    let end = |key: Key| (0..3).map(|c| key.below(c, NODES as u64) as u32).min().unwrap_or(0);
    let edges: Vec<_> = (0..EDGES / 2)
        .map(|i| Key::new(1).with(i))
        .map(|key| (end(key.with(0)), end(key.with(1))))
        .flat_map(|(u, v)| [(u, v), (v, u)])
        .collect();
    SampleGraph::new(Csc::from_edges(NODES, &edges)).expect("the lists were just built")
}

fn neighbors(c: &mut Criterion) {
    let graph = graph();
    let weights: Vec<f32> = (0..EDGES).map(|e| Key::new(3).unit(e) as f32).collect();
    let weighted = graph.clone().with_weights(weights.into()).expect("a weight for each edge");
    let train: Vec<u32> = (0..NODES as u32).step_by(10).collect();
    let mut group = c.benchmark_group("neighbors");
    group.sample_size(20);
    let samplers = |fanouts: &[i64]| -> gnarl_common::Result<[Box<dyn Sampler>; 4]> {
        Ok([
            Box::new(UniformSampler::new(&graph, fanouts)?),
            Box::new(LaborSampler::new(&graph, fanouts)?),
            Box::new(ExactSampler::new(&graph, fanouts)?),
            Box::new(WeightedSampler::new(&weighted, fanouts)?),
        ])
    };
    let sets = [&[15i64, 10, 5][..], &[25, 10]];
    for (fanouts, sampler) in sets.iter().flat_map(|&fanouts| {
        samplers(fanouts).expect("fan-outs are positive").map(|sampler| (fanouts, sampler))
    }) {
        let (key, mut scratch) = (Key::new(2), Scratch::new());
        let batches = sampler.epoch(&train, 1024, key);
        let mut run = || -> usize {
            let sample = |seeds: &Vec<u32>| sampler.sample(seeds, key, &mut scratch);
            batches[..8].iter().map(sample).map(|b| b.map_or(0, |b| b.num_edges())).sum()
        };
        group.throughput(Throughput::Elements(run() as u64));
        group.bench_function(BenchmarkId::new(sampler.name(), format!("{fanouts:?}")), |b| {
            b.iter(&mut run)
        });
    }
    group.finish();
}

criterion_group!(benches, neighbors);
criterion_main!(benches);
