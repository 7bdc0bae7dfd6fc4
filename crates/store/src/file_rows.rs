//! Rows of a file that exceeds memory: read past the system's cache, with a cache of rows of their own.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use gnarl_common::{Result, RowFile};

use crate::cache::{CachePolicy, CacheStats, Policy, RowCache};

/// Rows of a shard of the cache at least.
const LEAST: usize = 1024;
/// Shards of the cache at most: callers are as many as threads that prepare batches.
const SHARDS: usize = 64;

/// Rows that follow one another from which on they are read in order.
const IN_ORDER: usize = 64;
/// Bytes of rows that are read in order at a time.
const SCAN: usize = 8 << 20;
/// Looks for the cache before rows are read without it.
const TRIES: usize = 10_000;

/// The rows of a file, of which some stay in memory: by rows, of which a page of the system's cache has some that nobody
/// asked for, and by how often they are used.
pub(crate) struct FileRows {
    file: RowFile,
    /// Rows that stay in memory.
    slots: usize,
    cache: Mutex<OfProcess>,
}

/// The cache of a process. One that is forked off has a cache of its own: nobody there gives back what threads of the other
/// one held at that moment.
struct OfProcess {
    process: u32,
    cache: Arc<RowCache<u64>>,
}

impl FileRows {
    /// The rows of `file`, with a cache that takes at most `memory` bytes.
    pub fn new(file: RowFile, memory: u64) -> Self {
        // The width in values of 4 bytes, as policies count.
        let width = file.row_words() * (size_of::<u64>() / size_of::<f32>());
        let slots = CachePolicy::ClockPro.capacity(memory, width);
        let slots = slots.min(usize::try_from(file.rows()).unwrap_or(usize::MAX));
        let cache = Mutex::new(OfProcess::new(file.row_words(), slots));
        Self { file, slots, cache }
    }

    /// Hands the bytes of each row of `ids` to `found`, with its position, in any order. They begin at a multiple of 8 bytes.
    /// Rows that follow one another in the file are read in order, and leave those in the cache where they are.
    ///
    /// # Errors
    /// If an id has no row, the file became shorter, or the disk fails.
    pub fn visit(&self, ids: &[u32], found: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let ids: Vec<u64> = ids.iter().map(|&id| id.into()).collect();
        let source = |ids: &[u64], out: &mut [u64]| self.file.read(ids, out);
        let row_bytes = self.file.row_bytes();
        let words = self.file.row_words();
        if ids.len() >= IN_ORDER && ids.windows(2).all(|pair| pair[0] + 1 == pair[1]) {
            return self.scan(&ids, found);
        }
        let cache = self.cache().unwrap_or_else(|| OfProcess::new(words, 0).cache);
        cache.visit(&ids, &source, &mut |i, row| {
            found(i, &bytemuck::cast_slice(row)[..row_bytes]);
        })
    }

    /// Reads rows that follow one another.
    fn scan(&self, ids: &[u64], found: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let words = self.file.row_words();
        let each = (SCAN / (words * size_of::<u64>()).max(1)).max(1);
        let mut rows = vec![0; each.min(ids.len()) * words];
        for (number, ids) in ids.chunks(each).enumerate() {
            let rows = &mut rows[..ids.len() * words];
            self.file.read(ids, rows)?;
            for (i, row) in rows.chunks_exact(words).enumerate() {
                found(number * each + i, &bytemuck::cast_slice(row)[..self.file.row_bytes()]);
            }
        }
        Ok(())
    }

    /// Statistics of the cache.
    pub fn stats(&self) -> CacheStats {
        self.cache().map_or(CacheStats::default(), |cache| cache.stats())
    }

    /// The cache of this process; none if a thread held it that was lost in a fork.
    fn cache(&self) -> Option<Arc<RowCache<u64>>> {
        let tries = std::iter::repeat_with(|| {
            self.cache.try_lock().inspect_err(|_| std::thread::yield_now())
        });
        let mut known = tries.take(TRIES).find_map(std::result::Result::ok)?;
        if known.process != std::process::id() {
            *known = OfProcess::new(self.file.row_words(), self.slots);
        }
        Some(known.cache.clone())
    }
}

impl OfProcess {
    fn new(words: usize, slots: usize) -> Self {
        let shards = (slots / LEAST).clamp(1, SHARDS);
        let policy = |_| -> Box<dyn Policy> {
            match NonZeroUsize::new(slots / shards) {
                Some(slots) => CachePolicy::ClockPro.slots(slots),
                None => CachePolicy::Fixed.slots(NonZeroUsize::MIN),
            }
        };
        let cache = RowCache::of_shards(words, (0..shards).map(policy).collect());
        Self { process: std::process::id(), cache: Arc::new(cache) }
    }
}

impl fmt::Debug for FileRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileRows").field("file", &self.file).finish_non_exhaustive()
    }
}
