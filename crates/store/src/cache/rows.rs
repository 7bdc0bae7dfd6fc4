//! The cache itself: rows in slots, and a source for the rest.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gnarl_common::{Result, prefetch};
use hashbrown::HashMap;

use super::Policy;
use crate::RowSource;
use crate::source::{check_len, span};

/// How many rows ahead memory is asked for.
const AHEAD: usize = 8;

/// Rows of a source, some of them kept at hand.
///
/// Rows are those of the source whatever the policy, the capacity and the number of callers, so
/// the source's rows must not change while they are cached. Only the counts depend on the order
/// in which callers come. The lock is not held while the source works.
pub struct CachedRows<S> {
    source: S,
    held: Mutex<Held>,
    hits: AtomicU64,
    misses: AtomicU64,
    fetched: AtomicU64,
}

/// The kept rows, `slots × width`, and whose they are.
struct Held {
    policy: Box<dyn Policy>,
    rows: Vec<f32>,
}

/// What a cache has answered so far. Calls that failed do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Ids asked for whose row was kept.
    pub hits: u64,
    /// Ids asked for whose row was not. With the hits, all ids asked for, repeated ones too.
    pub misses: u64,
    /// Rows fetched from the source. An id that a call misses several times is fetched once.
    pub fetched: u64,
}

/// What one call did not find.
#[derive(Default)]
struct Missing {
    /// Distinct ids in the order they were met.
    ids: Vec<u64>,
    /// Row of the output, and whose it is among `ids`.
    places: Vec<(usize, usize)>,
}

impl<S: RowSource> CachedRows<S> {
    /// An empty cache in front of `source`, with a row for each slot of `policy`.
    pub fn new(source: S, policy: Box<dyn Policy>) -> Self {
        let rows = vec![0.0; policy.slots() * source.width()];
        Self {
            source,
            held: Mutex::new(Held { policy, rows }),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            fetched: AtomicU64::new(0),
        }
    }

    /// Counts so far. Each is exact once no call is under way.
    pub fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            fetched: self.fetched.load(Ordering::Relaxed),
        }
    }

    /// Share of ids whose row was kept when asked for, 0 before any was.
    pub fn hit_rate(&self) -> f64 {
        let CacheStats { hits, misses, .. } = self.stats();
        hits as f64 / (hits + misses).max(1) as f64
    }

    /// Fetches the rows of distinct `ids`, `batch` of them at a time, before anyone asks for them, and
    /// offers them to the policy. They count as fetched only.
    ///
    /// # Errors
    /// Those of the source; rows of batches before are kept.
    pub fn prefetch(&self, ids: &[u64], batch: usize) -> Result<()> {
        let width = self.width();
        for ids in ids.chunks(batch.max(1)) {
            let mut rows = vec![0.0; ids.len() * width];
            self.source.fetch(ids, &mut rows)?;
            self.keep(ids, &rows);
            self.fetched.fetch_add(ids.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the rows that are kept; returns which are not.
    fn copy_held(&self, ids: &[u64], out: &mut [f32]) -> Missing {
        let width = self.width();
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
        let width = self.width();
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

/// Rows of the output with the slots that have them, and what has no slot.
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

impl<S: RowSource> RowSource for CachedRows<S> {
    fn width(&self) -> usize {
        self.source.width()
    }

    /// Asks the source at most once, for all distinct ids that are not kept. Its errors are passed
    /// on, and the cache is as before.
    fn fetch(&self, ids: &[u64], out: &mut [f32]) -> Result<()> {
        let width = self.width();
        check_len(out, ids.len(), width)?;
        let missing = self.copy_held(ids, out);
        if !missing.ids.is_empty() {
            let mut fetched = vec![0.0; missing.ids.len() * width];
            self.source.fetch(&missing.ids, &mut fetched)?;
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
}
