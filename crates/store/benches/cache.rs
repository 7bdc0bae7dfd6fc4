//! Hit ratio of each cache policy, and its time for a request, on ids as skewed as those of
//! neighbor sampling. Rows come from memory, so the time is the cache's own.
//!
//! Hits, and nanoseconds for each id asked for, on one of two cores of an AMD EPYC with 32 MiB of L3
//! that were at work on other things too: times are rough, and compare the policies of one line. The
//! fixed cache is the bound: it knows the skew.
//!
//! ```text
//! skew  bytes   fixed        fifo         lru          clockpro
//! 0.7    1 %    0.159   163  0.039   294  0.036   509  0.105   351
//! 0.7    5 %    0.326   218  0.145   370  0.157   643  0.268   548
//! 0.7   20 %    0.547   264  0.361   412  0.382   728  0.463   678
//! 1.0    1 %    0.347   107  0.131   232  0.122   468  0.310   277
//! 1.0    5 %    0.568   164  0.349   258  0.392   496  0.513   370
//! 1.0   20 %    0.725   273  0.598   671  0.637  1072  0.676   704
//! ```

use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_store::RowSource;
use gnarl_store::cache::{CachePolicy, CachedRows};

const NODES: usize = 1 << 20;
const WIDTH: usize = 100;
const REQUEST: usize = 20_000;
/// Requests before the measurement, and in the round that is measured.
const WARM: usize = 100;
const ROUND: usize = 50;

struct Constant;

impl RowSource for Constant {
    fn width(&self) -> usize {
        WIDTH
    }

    fn fetch(&self, _: &[u64], out: &mut [f32]) -> Result<()> {
        out.fill(1.0);
        Ok(())
    }
}

/// Distinct ids in each request, as a batch has them; the `r`-th most wanted node is drawn in
/// proportion to `1 / r^exponent`.
fn requests(exponent: f64) -> Vec<Vec<u64>> {
    let mut total = 0.0;
    let sums: Vec<f64> = (1..=NODES)
        .map(|r| {
            total += (r as f64).powf(-exponent);
            total
        })
        .collect();
    let draw = |key: Key| -> Vec<u64> {
        let rank = |c| sums.partition_point(|&sum| sum <= key.unit(c) * total) as u64;
        let mut ids: Vec<u64> = (0..REQUEST as u64).map(rank).collect();
        ids.sort_unstable();
        ids.dedup();
        key.shuffle(&mut ids);
        ids
    };
    (0..(WARM + ROUND) as u64).map(|i| draw(Key::new(1).with(i))).collect()
}

fn run(cache: &CachedRows<Arc<Constant>>, requests: &[Vec<u64>], out: &mut [f32]) {
    for ids in requests {
        cache.fetch(ids, &mut out[..ids.len() * WIDTH]).expect("constants are always there");
    }
}

fn caches(c: &mut Criterion) {
    let mut group = c.benchmark_group("cache");
    group.sample_size(10).warm_up_time(Duration::from_secs(1));
    let mut out = vec![0.0; REQUEST * WIDTH];
    for exponent in [0.7, 1.0] {
        let requests = requests(exponent);
        for (share, policy) in
            [1, 5, 20].into_iter().flat_map(|s| CachePolicy::ALL.map(|policy| (s, policy)))
        {
            let bytes = (NODES * WIDTH * 4 * share / 100) as u64;
            // Ids are ranks: the fixed cache knows exactly what is wanted most.
            let choose = |rows| Ok((0..rows as u64).collect());
            let cache = policy.build(Arc::new(Constant), bytes, choose).expect("ids are chosen");
            run(&cache, &requests[..WARM], &mut out);
            let before = cache.stats();
            run(&cache, &requests[WARM..], &mut out);
            let after = cache.stats();
            let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
            let name = format!("zipf {exponent}, {share} % of bytes");
            println!("{policy}, {name}: {:.3} hits", hits as f64 / (hits + misses) as f64);
            group.throughput(Throughput::Elements(hits + misses));
            group.bench_function(BenchmarkId::new(policy.name(), name), |b| {
                b.iter(|| run(&cache, &requests[WARM..], &mut out))
            });
        }
    }
    group.finish();
}

criterion_group!(benches, caches);
criterion_main!(benches);
