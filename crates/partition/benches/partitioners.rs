//! Edges a second of the passes that touch every edge, on generated power-law graphs: one whose node
//! tables outgrow the second-level cache, one whose tables outgrow all caches, beside the floor that
//! random access to memory sets there.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gnarl_common::rng::Key;
use gnarl_graph::{EdgeStream, MemoryEdges, for_each_edge};
use gnarl_partition::vertex_cut::{self, Replicas};
use gnarl_partition::{PartitionOptions, by_name};

/// Numbers of nodes and edges.
const SMALL: (u64, u64) = (1 << 20, 8 << 20);
const LARGE: (u64, u64) = (1 << 24, 4 << 24);

/// A symmetric graph whose edges prefer some ids: an end is the least of three uniform draws,
/// scattered over all ids.
fn graph((nodes, edges): (u64, u64)) -> MemoryEdges {
    let end = |key: Key| {
        let least = (0..3).map(|c| key.below(c, nodes)).min().unwrap_or(0);
        least.wrapping_mul(0x9e37_79b1) % nodes
    };
    let edges = (0..edges / 2)
        .map(|i| Key::new(1).with(i))
        .map(|key| (end(key.with(0)), end(key.with(1))))
        .flat_map(|(u, v)| [(u, v), (v, u)]);
    MemoryEdges::new(nodes, edges).expect("ids are below the number of nodes")
}

fn options() -> PartitionOptions {
    PartitionOptions { parts: 8, ..Default::default() }
}

/// Whole runs of the vertex partitioners that stream.
fn vertex(c: &mut Criterion) {
    let mut edges = graph(SMALL);
    let mut group = c.benchmark_group("vertex");
    group.sample_size(10).throughput(Throughput::Elements(edges.num_edges()));
    for name in ["random", "spring", "fennel", "grem", "knot"] {
        let partitioner = by_name(name).expect("a registered name");
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| partitioner.partition(&mut edges, &options()).expect("a sound graph"))
        });
    }
    group.finish();
}

/// Whole runs of the edge partitioners that stream, part sets collected.
fn edge(c: &mut Criterion) {
    let mut edges = graph(SMALL);
    let mut group = c.benchmark_group("edge");
    group.sample_size(10).throughput(Throughput::Elements(edges.num_edges()));
    for name in ["hash-1d", "hash-2d", "dbh", "greedy", "hdrf", "2ps-l"] {
        let partitioner = vertex_cut::by_name(name).expect("a registered name");
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                let mut replicas = Replicas::new(SMALL.0, 8);
                partitioner
                    .partition(&mut edges, &options(), &mut replicas)
                    .expect("a sound graph");
                replicas.quality()
            })
        });
    }
    group.finish();
}

/// What memory allows where no table fits a cache: `floor` reads the edges and adds 1 for each end in
/// a table of 4 bytes a node, twice over, as any partitioner must that reads degrees, then edges.
fn large(c: &mut Criterion) {
    let mut edges = graph(LARGE);
    let mut group = c.benchmark_group("large");
    group.sample_size(10).throughput(Throughput::Elements(edges.num_edges()));
    group.bench_function("floor", |b| {
        let mut table = vec![0u32; LARGE.0 as usize];
        b.iter(|| {
            for _ in 0..2 {
                let mut touch = |u: u64, v: u64| {
                    for end in [u, v] {
                        table[end as usize] = table[end as usize].wrapping_add(1);
                    }
                };
                for_each_edge(&mut edges, &mut touch).expect("edges in memory");
            }
            table[0]
        });
    });
    for name in ["spring", "grem"] {
        let partitioner = by_name(name).expect("a registered name");
        group.bench_function(name, |b| {
            b.iter(|| partitioner.partition(&mut edges, &options()).expect("a sound graph"))
        });
    }
    group.finish();
}

criterion_group!(benches, vertex, edge, large);
criterion_main!(benches);
