//! The cache: rows in slots, backed by a source.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gnarl_common::{Result, prefetch};
use hashbrown::HashMap;

use super::Policy;
use crate::RowSource;
use crate::source::{check_len, span};

/// Prefetch distance in rows.
const AHEAD: usize = 8;

/// Fetches the rows of ids into a slice of that many rows.
pub type FetchRows<'a> = &'a dyn Fn(&[u64], &mut [f32]) -> Result<()>;

/// A cache of the rows of a source.
///
/// Rows equal those of the source whatever the policy, the capacity and the number of callers, so
/// the source's rows must not change while they are cached. Only the counts depend on the order of
/// callers. The lock is not held while the source works.
pub struct CachedRows<S> {
    source: S,
    cache: RowCache,
}

/// A cache of rows whose source each caller brings along.
pub struct RowCache {
    width: usize,
    held: Mutex<Held>,
    hits: AtomicU64,
    misses: AtomicU64,
    fetched: AtomicU64,
}

/// The cached rows, `slots × width`, and their keys.
struct Held {
    policy: Box<dyn Policy>,
    rows: Vec<f32>,
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
#[derive(Default)]
struct Missing {
    /// Distinct ids in the order of first occurrence.
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

impl RowCache {
    /// An empty cache of rows of so many values, with one row per slot of `policy`.
    pub fn new(width: usize, policy: Box<dyn Policy>) -> Self {
        let rows = vec![0.0; policy.slots() * width];
        Self {
            width,
            held: Mutex::new(Held { policy, rows }),
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

    /// Fetches the rows of `ids` into `out`. Calls `source` at most once, for all distinct misses.
    ///
    /// # Errors
    /// If `out` is not of that length; those of the source, which leave the cache as it was.
    pub fn fetch(&self, ids: &[u64], out: &mut [f32], source: FetchRows<'_>) -> Result<()> {
        let width = self.width;
        check_len(out, ids.len(), width)?;
        let missing = self.copy_held(ids, out);
        if !missing.ids.is_empty() {
            let mut fetched = vec![0.0; missing.ids.len() * width];
            source(&missing.ids, &mut fetched)?;
            self.keep(&missing.ids, &fetched);
            for &(i, at) in &missing.places {
                out[span(i, width)].copy_from_slice(&fetched[span(at, width)]);
            }
        }
        let misses = missing.places.len();
        self.hits.fetch_add((ids.len() - misses) as u64, Ordering::Relaxed);
        self.misses.fetch_add(misses as u64, Ordering::Relaxed);
        self.fetched.fetch_add(missing.ids.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the cached rows; returns the misses.
    fn copy_held(&self, ids: &[u64], out: &mut [f32]) -> Missing {
        let width = self.width;
        let Held { policy, rows } = &mut *self.held();
        let (found, missing) = look_up(&mut **policy, ids);
        let row = |slot: u32| &rows[span(slot as usize, width)];
        for (n, &(i, slot)) in found.iter().enumerate() {
            if let Some(&(_, later)) = found.get(n + AHEAD) {
                prefetch::row(row(later));
            }
            out[span(i, width)].copy_from_slice(row(slot));
        }
        missing
    }

    /// Offers fetched rows to the policy.
    fn keep(&self, ids: &[u64], fetched: &[f32]) {
        let width = self.width;
        let Held { policy, rows } = &mut *self.held();
        for (i, &id) in ids.iter().enumerate() {
            // Another caller may have fetched the same row meanwhile.
            if policy.get(id).is_some() {
                continue;
            }
            if let Some(slot) = policy.insert(id) {
                rows[span(slot as usize, width)].copy_from_slice(&fetched[span(i, width)]);
            }
        }
    }
}

/// Output rows with their slots, and the misses.
fn look_up(policy: &mut dyn Policy, ids: &[u64]) -> (Vec<(usize, u32)>, Missing) {
    let (mut found, mut missing) = (Vec::with_capacity(ids.len()), Missing::default());
    let mut seen = HashMap::<u64, usize>::new();
    for (i, &id) in ids.iter().enumerate() {
        if let Some(slot) = policy.get(id) {
            found.push((i, slot));
            continue;
        }
        let at = *seen.entry(id).or_insert_with(|| {
            missing.ids.push(id);
            missing.ids.len() - 1
        });
        missing.places.push((i, at));
    }
    (found, missing)
}
