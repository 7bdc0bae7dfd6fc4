//! Nanoseconds to look up the source of an edge in a batch and to append it if it is new: a table of all nodes of the graph beside
//! a hash of the batch's nodes. The first is used below four million nodes, the second from there on.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gnarl_common::rng::Key;

#[path = "../src/positions.rs"]
#[expect(dead_code, reason = "only insertion is measured")]
mod positions;
use positions::Positions;

/// Edges looked up together by a sampler, about.
const GROUP: usize = 640;

/// Sources of the edges of a batch: evenly drawn, or skewed by the power of an even draw.
fn sources(batch: u64, nodes: usize, edges: u64, power: i32) -> Vec<u32> {
    let source = |i| (Key::new(batch).unit(i).powi(power) * nodes as f64) as u32;
    (0..edges).map(source).collect()
}

fn insertion(c: &mut Criterion) {
    let mut group = c.benchmark_group("positions");
    group.sample_size(10);
    for nodes in [1 << 20, 1 << 22, 1 << 24, 111_000_000] {
        for (edges, power) in [(20_000, 1), (400_000, 1), (400_000, 3)] {
            group.throughput(Throughput::Elements(edges));
            for (name, largest) in [("table", usize::MAX), ("hash", 0)] {
                let mut positions = Positions::default();
                // Each batch has other sources: those of the last one are in the caches.
                let mut batch = 0;
                let mut next = || {
                    batch += 1;
                    sources(batch, nodes, edges, power)
                };
                let mut insert = |mut sources: Vec<u32>| {
                    positions.clear_with(nodes, largest);
                    positions.reserve(sources.len());
                    for some in sources.chunks_mut(GROUP) {
                        some.iter().for_each(|&source| positions.hint(source));
                        positions.insert_all(some);
                    }
                    sources
                };
                let id =
                    BenchmarkId::new(name, format!("{nodes} nodes, {edges} edges, power {power}"));
                group.bench_function(id, |b| {
                    b.iter_batched(&mut next, &mut insert, BatchSize::LargeInput);
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, insertion);
criterion_main!(benches);
