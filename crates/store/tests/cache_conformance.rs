//! What a cache must hold to, with every policy, capacity and number of callers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_store::RowSource;
use gnarl_store::cache::{CachePolicy, CacheStats, CachedRows};

const WIDTH: usize = 3;
const NODES: u64 = 400;

/// Rows that tell their id, and a record of what was asked.
#[derive(Default)]
struct Remote {
    asked: Mutex<Vec<Vec<u64>>>,
    down: AtomicBool,
}

impl RowSource for Remote {
    fn width(&self) -> usize {
        WIDTH
    }

    fn fetch(&self, ids: &[u64], out: &mut [f32]) -> Result<()> {
        self.asked.lock().unwrap().push(ids.to_vec());
        out.copy_from_slice(&expected(ids));
        match self.down.load(Ordering::Relaxed) {
            true => Err(Error::invalid("part 3 does not answer")),
            false => Ok(()),
        }
    }
}

fn expected(ids: &[u64]) -> Vec<f32> {
    ids.iter().flat_map(|&id| (0..WIDTH).map(move |c| (id * 10) as f32 + c as f32)).collect()
}

/// Ids skewed towards the low ones, some of them several times.
fn request(number: u64, len: u64) -> Vec<u64> {
    let key = Key::new(3).with(number);
    (0..len).map(|i| key.below(2 * i, 1 + key.below(2 * i + 1, NODES))).collect()
}

fn get(cache: &CachedRows<Arc<Remote>>, ids: &[u64]) -> Result<Vec<f32>> {
    let mut out = vec![f32::NAN; ids.len() * WIDTH];
    cache.fetch(ids, &mut out).map(|()| out)
}

/// The fewest bytes that hold `rows`.
fn bytes(policy: CachePolicy, rows: usize) -> u64 {
    (0..).map(|b| 8 * b).find(|&b| policy.capacity(b, WIDTH) >= rows).unwrap()
}

/// Calls `check` with every policy at capacities from none to more than there are nodes.
fn for_each_cache(check: impl Fn(&str, usize, &Arc<Remote>, CachedRows<Arc<Remote>>)) {
    for policy in CachePolicy::ALL {
        for rows in [0, 1, 2, 30, 150, 1000] {
            let (remote, bytes) = (Arc::new(Remote::default()), bytes(policy, rows));
            let choose = |n| Ok((0..n as u64).collect());
            let cache = policy.build(remote.clone(), bytes, choose).unwrap();
            let what = format!("{policy} of {rows} rows");
            check(&what, policy.capacity(bytes, WIDTH), &remote, cache);
        }
    }
}

#[test]
fn rows_are_those_of_the_source() {
    for_each_cache(|what, _, _, cache| {
        assert_eq!(cache.width(), WIDTH);
        for number in 0..60 {
            // Requests of up to 120 ids outgrow the small caches.
            let ids = request(number, 2 * number);
            assert_eq!(get(&cache, &ids).unwrap(), expected(&ids), "{what}");
        }
    });
}

#[test]
fn the_source_is_asked_once_for_distinct_ids_that_are_missing() {
    for_each_cache(|what, _, remote, cache| {
        for number in 0..40 {
            let before = (cache.stats(), remote.asked.lock().unwrap().len());
            let ids = request(number, 50);
            get(&cache, &ids).unwrap();
            let asked = remote.asked.lock().unwrap();
            let (now, last) = (cache.stats(), &asked[before.1..]);
            assert!(last.len() <= 1, "{what}: one call at most");
            let mut distinct = last.concat();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), last.concat().len(), "{what}: no id twice");
            assert_eq!(now.fetched - before.0.fetched, distinct.len() as u64, "{what}");
            let missed = ids.iter().filter(|id| distinct.binary_search(id).is_ok()).count() as u64;
            assert_eq!(now.misses - before.0.misses, missed, "{what}");
            assert_eq!(now.hits + now.misses, 50 * (number + 1), "{what}");
        }
    });
}

#[test]
fn a_cache_keeps_what_fits() {
    for_each_cache(|what, rows, remote, cache| {
        let ids: Vec<u64> = (0..NODES.min(rows as u64)).collect();
        get(&cache, &ids).unwrap();
        assert_eq!(get(&cache, &ids).unwrap(), expected(&ids), "{what}");
        assert_eq!(remote.asked.lock().unwrap().concat().len(), ids.len(), "{what}");
        let rate = if ids.is_empty() { 0.0 } else { 0.5 };
        assert_eq!(cache.hit_rate(), rate, "{what}");
    });
}

#[test]
fn rows_fetched_ahead_are_hits_and_come_in_batches() {
    for_each_cache(|what, rows, remote, cache| {
        let ids: Vec<u64> = (0..NODES.min(rows as u64)).collect();
        cache.prefetch(&ids, 7).unwrap();
        assert!(remote.asked.lock().unwrap().iter().all(|asked| asked.len() <= 7), "{what}");
        let ahead = CacheStats { fetched: ids.len() as u64, ..CacheStats::default() };
        assert_eq!(cache.stats(), ahead, "{what}");
        assert_eq!(get(&cache, &ids).unwrap(), expected(&ids), "{what}");
        assert_eq!(cache.stats(), CacheStats { hits: ids.len() as u64, ..ahead }, "{what}");
        remote.down.store(true, Ordering::Relaxed);
        assert!(cache.prefetch(&[NODES + 1], 7).is_err(), "{what}");
    });
}

#[test]
fn no_more_rows_are_kept_than_fit() {
    for_each_cache(|what, rows, remote, cache| {
        let all: Vec<u64> = (0..NODES).collect();
        get(&cache, &all).unwrap();
        get(&cache, &all).unwrap();
        let again = remote.asked.lock().unwrap().concat().len() - all.len();
        assert!(again >= all.len().saturating_sub(rows), "{what}: {again} fetched again");
    });
}

#[test]
fn callers_at_once_get_the_same_rows() {
    for_each_cache(|what, _, remote, cache| {
        std::thread::scope(|scope| {
            for caller in 0..4 {
                let cache = &cache;
                scope.spawn(move || {
                    for number in 0..50 {
                        let ids = request(100 * (number % 7) + caller, 40);
                        assert_eq!(get(cache, &ids).unwrap(), expected(&ids), "{what}");
                    }
                });
            }
        });
        let CacheStats { hits, misses, fetched } = cache.stats();
        assert_eq!(hits + misses, 4 * 50 * 40, "{what}");
        assert_eq!(fetched, remote.asked.lock().unwrap().concat().len() as u64, "{what}");
    });
}

#[test]
fn errors_of_the_source_pass_and_leave_the_cache_as_it_was() {
    for_each_cache(|what, _, remote, cache| {
        let (known, ids) = (request(1, 20), (0..NODES).collect::<Vec<_>>());
        get(&cache, &known).unwrap();
        let before = cache.stats();
        remote.down.store(true, Ordering::Relaxed);
        if let Err(error) = get(&cache, &ids) {
            assert_eq!(error.to_string(), "part 3 does not answer", "{what}");
            assert_eq!(cache.stats(), before, "{what}: failed calls do not count");
        }
        remote.down.store(false, Ordering::Relaxed);
        assert_eq!(get(&cache, &known).unwrap(), expected(&known), "{what}");
        assert_eq!(get(&cache, &ids).unwrap(), expected(&ids), "{what}");
    });
}

#[test]
fn an_output_of_another_length_is_refused() {
    for_each_cache(|what, _, remote, cache| {
        for len in [0, 1, 2 * WIDTH - 1, 2 * WIDTH + 1] {
            let error = cache.fetch(&[1, 2], &mut vec![0.0; len]).unwrap_err().to_string();
            assert!(error.contains("2 rows of width 3"), "{what}: {error}");
        }
        assert!(get(&cache, &[]).unwrap().is_empty(), "{what}");
        assert!(remote.asked.lock().unwrap().is_empty(), "{what}");
    });
}

#[test]
fn budgets_are_kept_and_larger_ones_hold_more() {
    for policy in CachePolicy::ALL {
        let mut last = 0;
        for bytes in (0..40).map(|i| (1u64 << i) / 3) {
            let rows = policy.capacity(bytes, 100);
            assert!(rows >= last && 400 * rows as u64 <= bytes, "{policy}: {rows} in {bytes}");
            last = rows;
        }
        let wide = policy.capacity(1 << 30, 1000);
        assert!(4000 * wide > 9 * (1 << 30) / 10, "{policy}: {wide} wide rows");
    }
}

#[test]
fn the_choice_is_asked_for_by_fixed_caches_alone_and_its_errors_pass() {
    for policy in CachePolicy::ALL {
        let refuse = |_| Err(Error::invalid("no scores"));
        let built = policy.build(Arc::new(Remote::default()), 1 << 16, refuse);
        assert_eq!(built.is_err(), policy == CachePolicy::Fixed, "{policy}");
    }
}
