//! Edges a second of the passes that touch every edge, on a generated power-law graph whose node
//! tables outgrow the second-level cache.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gnarl_graph::rng::Key;
use gnarl_graph::{EdgeStream, MemoryEdges};
use gnarl_partition::edge::{self, Replicas};
use gnarl_partition::{PartitionOptions, by_name};

const NODES: u64 = 1 << 20;
const EDGES: u64 = 8 << 20;

/// A symmetric graph whose edges prefer some ids: an end is the least of three uniform draws,
/// scattered over all ids.
fn graph() -> MemoryEdges {
    let end = |key: Key| {
        let least = (0..3).map(|c| key.below(c, NODES)).min().unwrap_or(0);
        least.wrapping_mul(0x9e37_79b1) % NODES
    };
    let edges = (0..EDGES / 2)
        .map(|i| Key::new(1).with(i))
        .map(|key| (end(key.with(0)), end(key.with(1))))
        .flat_map(|(u, v)| [(u, v), (v, u)]);
    MemoryEdges::new(NODES, edges).expect("ids are below the number of nodes")
}

fn options() -> PartitionOptions {
    PartitionOptions { parts: 8, ..Default::default() }
}

/// Whole runs of the vertex partitioners that stream.
fn vertex(c: &mut Criterion) {
    let mut edges = graph();
    let mut group = c.benchmark_group("vertex");
    group.sample_size(10).throughput(Throughput::Elements(edges.num_edges()));
    for name in ["random", "spring", "fennel", "knot"] {
        let partitioner = by_name(name).expect("a registered name");
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| partitioner.partition(&mut edges, &options()).expect("a sound graph"))
        });
    }
    group.finish();
}

/// Whole runs of the edge partitioners that stream, part sets collected.
fn edge(c: &mut Criterion) {
    let mut edges = graph();
    let mut group = c.benchmark_group("edge");
    group.sample_size(10).throughput(Throughput::Elements(edges.num_edges()));
    for name in ["hash-1d", "hash-2d", "dbh", "greedy", "hdrf", "2ps-l"] {
        let partitioner = edge::by_name(name).expect("a registered name");
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                let mut replicas = Replicas::new(NODES, 8);
                partitioner
                    .partition(&mut edges, &options(), &mut replicas)
                    .expect("a sound graph");
                replicas.quality()
            })
        });
    }
    group.finish();
}

criterion_group!(benches, vertex, edge);
criterion_main!(benches);
