//! The cache: rows in slots, backed by a source.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gnarl_common::{Result, prefetch};

use super::Policy;
use crate::RowSource;
use crate::source::{check_len, span};

/// Prefetch distance in rows.
const AHEAD: usize = 8;

/// Fetches the rows of ids into a slice of that many rows.
pub type FetchRows<'a, T = f32> = &'a dyn Fn(&[u64], &mut [T]) -> Result<()>;

/// A cache of the rows of a source.
///
/// Rows equal those of the source whatever the policy, the capacity and the number of callers, so
/// the source's rows must not change while they are cached. Only the counts depend on the order of
/// callers. The lock is not held while the source works.
pub struct CachedRows<S> {
    source: S,
    cache: RowCache,
}

/// A cache of rows whose source each caller brings along, divided into shards by id: callers meet at one of them only.
pub struct RowCache<T = f32> {
    width: usize,
    shards: Vec<Mutex<Held<T>>>,
    hits: AtomicU64,
    misses: AtomicU64,
    fetched: AtomicU64,
}

/// The cached rows, `slots × width`, and their keys.
struct Held<T> {
    policy: Box<dyn Policy>,
    rows: Vec<T>,
}

/// Cache statistics. Calls that failed do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Requested ids with a cached row.
    pub hits: u64,
    /// Requested ids without one. Hits and misses together count all requested ids, repeated ones
    /// too.
    pub misses: u64,
    /// Rows fetched from the source. An id that a call misses several times is fetched once.
    pub fetched: u64,
}

/// The misses of one call.
struct Missing {
    /// Distinct ids, ascending.
    ids: Vec<u64>,
    /// Output row, and the position of its id in `ids`.
    places: Vec<(usize, usize)>,
}

impl<S: RowSource> CachedRows<S> {
    /// An empty cache in front of `source`, with one row per slot of `policy`.
    pub fn new(source: S, policy: Box<dyn Policy>) -> Self {
        let cache = RowCache::new(source.width(), policy);
        Self { source, cache }
    }

    /// The statistics so far. Each count is exact once no call is under way.
    pub fn stats(&self) -> CacheStats {
        self.cache.stats()
    }

    /// Share of requested ids with a cached row, 0 before any request.
    pub fn hit_rate(&self) -> f64 {
        let CacheStats { hits, misses, .. } = self.stats();
        hits as f64 / (hits + misses).max(1) as f64
    }

    /// Prefetches the rows of distinct `ids`, `batch` of them at a time, and offers them to the
    /// policy. They count as fetched only.
    ///
    /// # Errors
    /// Those of the source; rows of earlier batches stay cached.
    pub fn prefetch(&self, ids: &[u64], batch: usize) -> Result<()> {
        let width = self.width();
        for ids in ids.chunks(batch.max(1)) {
            let mut rows = vec![0.0; ids.len() * width];
            self.source.fetch(ids, &mut rows)?;
            self.cache.keep(ids, &rows);
            self.cache.fetched.fetch_add(ids.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl<S: RowSource> RowSource for CachedRows<S> {
    fn width(&self) -> usize {
        self.source.width()
    }

    /// As [`RowCache::fetch`].
    fn fetch(&self, ids: &[u64], out: &mut [f32]) -> Result<()> {
        self.cache.fetch(ids, out, &|ids, out| self.source.fetch(ids, out))
    }
}

impl<T: Copy + Default> RowCache<T> {
    /// An empty cache of rows of so many values, with one row per slot of `policy`.
    pub fn new(width: usize, policy: Box<dyn Policy>) -> Self {
        Self::of_shards(width, vec![policy])
    }

    /// As [`RowCache::new`], with a shard for each of the policies.
    ///
    /// # Panics
    /// If there is none.
    pub fn of_shards(width: usize, policies: Vec<Box<dyn Policy>>) -> Self {
        assert!(!policies.is_empty());
        let shard = |policy: Box<dyn Policy>| {
            let rows = vec![T::default(); policy.slots() * width];
            Mutex::new(Held { policy, rows })
        };
        Self {
            width,
            shards: policies.into_iter().map(shard).collect(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            fetched: AtomicU64::new(0),
        }
    }

    /// The statistics so far. Each count is exact once no call is under way.
    pub fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            fetched: self.fetched.load(Ordering::Relaxed),
        }
    }

    /// Fetches the rows of `ids` into `out`. Calls `source` at most once, for all distinct misses in ascending order.
    ///
    /// # Errors
    /// If `out` is not of that length; those of the source, which leave the cache as it was.
    pub fn fetch(&self, ids: &[u64], out: &mut [T], source: FetchRows<'_, T>) -> Result<()> {
        let width = self.width;
        check_len(out, ids.len(), width)?;
        self.visit(ids, source, &mut |i, row| out[span(i, width)].copy_from_slice(row))
    }

    /// Hands the row of each of `ids` to `found`, with its position, in any order. Calls `source` as [`RowCache::fetch`].
    ///
    /// # Errors
    /// Those of the source, which leave the cache as it was; some rows may be handed over by then.
    pub fn visit(
        &self,
        ids: &[u64],
        source: FetchRows<'_, T>,
        found: &mut dyn FnMut(usize, &[T]),
    ) -> Result<()> {
        let width = self.width;
        let missing = self.visit_held(ids, found);
        if !missing.ids.is_empty() {
            let mut fetched = vec![T::default(); missing.ids.len() * width];
            source(&missing.ids, &mut fetched)?;
            self.keep(&missing.ids, &fetched);
            for &(i, at) in &missing.places {
                found(i, &fetched[span(at, width)]);
            }
        }
        let misses = missing.places.len();
        self.hits.fetch_add((ids.len() - misses) as u64, Ordering::Relaxed);
        self.misses.fetch_add(misses as u64, Ordering::Relaxed);
        self.fetched.fetch_add(missing.ids.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// The shard of an id.
    fn shard_of(&self, id: u64) -> usize {
        let mixed = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        ((mixed * self.shards.len() as u64) >> 32) as usize
    }

    /// Positions of the ids of each shard.
    fn by_shard(&self, ids: &[u64]) -> Vec<Vec<usize>> {
        if let [_] = self.shards[..] {
            return vec![(0..ids.len()).collect()];
        }
        let mut of = vec![Vec::new(); self.shards.len()];
        for (i, &id) in ids.iter().enumerate() {
            of[self.shard_of(id)].push(i);
        }
        of
    }

    /// Hands over the cached rows; returns the misses.
    fn visit_held(&self, ids: &[u64], found: &mut dyn FnMut(usize, &[T])) -> Missing {
        let mut missed = Vec::new();
        for (shard, positions) in self.shards.iter().zip(self.by_shard(ids)) {
            let Held { policy, rows } = &mut *held(shard);
            let row = |slot: u32| &rows[span(slot as usize, self.width)];
            let mut slots = Vec::with_capacity(positions.len());
            for i in positions {
                match policy.get(ids[i]) {
                    Some(slot) => slots.push((i, slot)),
                    None => missed.push((ids[i], i)),
                }
            }
            for (n, &(i, slot)) in slots.iter().enumerate() {
                if let Some(&(_, later)) = slots.get(n + AHEAD) {
                    prefetch::row(row(later));
                }
                found(i, row(slot));
            }
        }
        Missing::new(missed)
    }

    /// Offers fetched rows to the policies.
    fn keep(&self, ids: &[u64], fetched: &[T]) {
        let width = self.width;
        for (shard, positions) in self.shards.iter().zip(self.by_shard(ids)) {
            let Held { policy, rows } = &mut *held(shard);
            for i in positions {
                // Another caller may have fetched the same row meanwhile.
                if policy.get(ids[i]).is_some() {
                    continue;
                }
                if let Some(slot) = policy.insert(ids[i]) {
                    rows[span(slot as usize, width)].copy_from_slice(&fetched[span(i, width)]);
                }
            }
        }
    }
}

fn held<T>(shard: &Mutex<Held<T>>) -> MutexGuard<'_, Held<T>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Missing {
    /// Those of ids and their positions.
    fn new(mut missed: Vec<(u64, usize)>) -> Self {
        missed.sort_unstable();
        let mut ids = Vec::with_capacity(missed.len());
        let mut places = Vec::with_capacity(missed.len());
        for (id, i) in missed {
            if ids.last() != Some(&id) {
                ids.push(id);
            }
            places.push((i, ids.len() - 1));
        }
        Self { ids, places }
    }
}
