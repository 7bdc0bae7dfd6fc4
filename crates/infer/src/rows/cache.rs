//! Caches of chunks.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use gnarl_common::{Error, Result};
use gnarl_store::cache::CachePolicy;

/// Rows of a chunk.
const CHUNK_ROWS: usize = 1 << 10;

/// A cache of chunks of rows, for each type of a layer: rows are in files that are read by whole chunks, and so many of
/// them stay in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cache {
    /// Chunks that stay.
    pub policy: CachePolicy,
    /// Memory of the cache.
    pub memory: CacheMemory,
    /// Rows of a chunk.
    pub chunk_rows: NonZeroUsize,
}

/// Memory of a cache; it has one chunk at least.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CacheMemory {
    /// Bytes.
    Bytes(u64),
    /// A share of all chunks.
    Share(f64),
}

impl Cache {
    /// A cache with chunks of 1,024 rows.
    pub fn new(policy: CachePolicy, memory: CacheMemory) -> Self {
        let chunk_rows = NonZeroUsize::new(CHUNK_ROWS).unwrap_or(NonZeroUsize::MIN);
        Self { policy, memory, chunk_rows }
    }

    /// Chunks in memory, of `chunks` of so many bytes.
    pub(super) fn slots(&self, chunks: usize, bytes: u64) -> NonZeroUsize {
        let slots = match self.memory {
            CacheMemory::Bytes(memory) => (memory / bytes.max(1)) as usize,
            CacheMemory::Share(share) => (share * chunks as f64).ceil() as usize,
        };
        NonZeroUsize::new(slots.min(chunks)).unwrap_or(NonZeroUsize::MIN)
    }
}

impl FromStr for Cache {
    type Err = Error;

    /// A policy and its memory: `fifo:10%` or `lru:64MiB`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::usage(format!(
                "a cache of chunks is a policy and its memory, not '{text}': {why}"
            ))
            .hint("such as fifo:10% of all chunks, or lru:64MiB")
        };
        let (policy, memory) =
            text.split_once(':').ok_or_else(|| wrong("its memory is missing"))?;
        let policy: CachePolicy = policy.parse()?;
        if policy == CachePolicy::Fixed {
            return Err(wrong("no chunks are chosen beforehand"));
        }
        let memory = match memory.strip_suffix('%') {
            Some(percent) => match percent.trim().parse::<f64>() {
                Ok(percent) if percent > 0.0 && percent <= 100.0 => {
                    CacheMemory::Share(percent / 100.0)
                }
                _ => return Err(wrong("a share is above 0% and at most 100%")),
            },
            None => {
                let bytes = memory.trim().parse::<bytesize::ByteSize>();
                CacheMemory::Bytes(bytes.map_err(|e| wrong(&e.to_string()))?.as_u64())
            }
        };
        Ok(Self::new(policy, memory))
    }
}

/// Chunks that gathers of rows read, each once per gather.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChunkReads {
    /// Chunks in the cache.
    pub hits: u64,
    /// Chunks read from files.
    pub misses: u64,
}

impl ChunkReads {
    /// All reads, of files and of the cache.
    pub fn total(self) -> u64 {
        self.hits + self.misses
    }

    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.hits += other.hits;
        self.misses += other.misses;
    }
}

impl fmt::Display for ChunkReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} chunks read, {} of them in the cache", self.total(), self.hits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_read_from_words() {
        let cache: Cache = "fifo:10%".parse().unwrap();
        assert_eq!((cache.policy, cache.memory), (CachePolicy::Fifo, CacheMemory::Share(0.1)));
        assert_eq!(cache.slots(95, 1 << 20).get(), 10);
        let cache: Cache = "lru:3MiB".parse().unwrap();
        assert_eq!(cache.slots(95, 1 << 20).get(), 3);
        assert_eq!(cache.slots(2, 1 << 20).get(), 2);
        assert_eq!(cache.slots(95, 1 << 30).get(), 1, "one chunk at least");
        for wrong in ["fifo", "fifo:", "fifo:0%", "fifo:101%", "fixed:10%", "lur:1MB", "lru:x"] {
            assert!(wrong.parse::<Cache>().is_err(), "{wrong}");
        }
    }
}
