//! Reading ahead of batches, where files exceed the memory that is free.
//!
//! A batch reads lists and features here and there: where they are not in memory, page after page, each a wait for the disk
//! and for the neighbors that the system reads with it. Here lists come by the pages of a batch, many at a time and no others,
//! and rows of features past the system's cache, of which those that are read most often stay in a cache of their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Once};

use gnarl_common::Result;
use gnarl_common::memory::{available, gib, sharers};
use gnarl_config::{DatasetSection, ReadAhead as Asked};

const GIB: u64 = 1 << 30;

/// Bytes of files that batches read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Files {
    /// In-neighbor lists, unless they are in memory.
    pub lists: u64,
    /// Features.
    pub features: u64,
    /// Those of which rows may stay in a cache: dense ones.
    pub rows: u64,
}

/// Bytes of the [`rows`](Files::rows) of all graphs that this process reads ahead: each has its share of the memory for them.
static ROWS: LazyLock<Arc<AtomicU64>> = LazyLock::new(Arc::default);

/// The reads of files of a graph.
pub(crate) struct ReadAhead {
    /// True if batches read ahead.
    on: bool,
    /// True if lists are read ahead where features are.
    lists: bool,
    files: Files,
    /// Bytes that rows of features of the process may take, if the run says so.
    cache: Option<u64>,
    /// Bytes of the rows of this graph and of all others.
    all_rows: Arc<AtomicU64>,
    /// What there is to read, and the memory for it.
    shortage: String,
    begun: Once,
}

impl Default for ReadAhead {
    /// Batches do not read ahead.
    fn default() -> Self {
        Self {
            on: false,
            lists: false,
            files: Files::default(),
            cache: None,
            all_rows: Arc::default(),
            shortage: String::new(),
            begun: Once::new(),
        }
    }
}

impl ReadAhead {
    /// As asked; `auto` reads ahead of batches where files exceed three quarters of the memory that is free: the rest is for
    /// batches, the model and its optimizer.
    pub fn new(asked: &DatasetSection, files: Files) -> Self {
        Self::beside(&ROWS, asked, files)
    }

    /// [`Self::new`] beside graphs whose rows take so many bytes.
    fn beside(all_rows: &Arc<AtomicU64>, asked: &DatasetSection, files: Files) -> Self {
        let left = available().map(|memory| memory.left);
        let bytes = files.lists + files.features;
        let exceeds = bytes > 0 && left.is_some_and(|left| bytes > left / 4 * 3);
        let on = match asked.read_ahead {
            Asked::Auto => exceeds,
            Asked::Always => true,
            Asked::Never => false,
        };
        let free = left.map_or("an unknown amount".into(), |left| gib(left as f64));
        let shortage = format!(
            "lists and features take {} of files, and {free} of memory is free",
            gib(bytes as f64)
        );
        if exceeds && !on {
            tracing::warn!(
                "{shortage}: with dataset.read_ahead = 'never' a batch waits for one page after the other"
            );
        }
        let fit = left.is_some_and(|left| files.lists <= left / 2);
        let lists = asked.read_ahead == Asked::Always || !fit;
        let cache = asked.cache_memory.map(|memory| memory.as_u64());
        if cache.is_some() && !on {
            tracing::warn!(
                "{shortage}: batches do not read ahead, and dataset.cache_memory is not used"
            );
        }
        if on {
            all_rows.fetch_add(files.rows, Ordering::Relaxed);
        }
        let all_rows = all_rows.clone();
        Self { on, lists, files, cache, all_rows, shortage, begun: Once::new() }
    }

    /// Called before a batch reads features: `begin`, called before the first, prepares for random reads for the rest of the
    /// run, with so many bytes for rows of features. Returns true if batches read ahead.
    pub fn before_batch(&self, begin: impl FnOnce(u64) -> Result<()>) -> bool {
        if self.on {
            self.begun.call_once(|| {
                let memory = self.share(self.cache.unwrap_or_else(|| self.room()));
                let kept = match self.files.rows {
                    0 => String::new(),
                    _ => format!(", rows of features with a cache of up to {}", gib(memory as f64)),
                };
                tracing::info!("{}: batches read them ahead{kept}", self.shortage);
                if let Err(error) = begin(memory) {
                    tracing::warn!("features are read by pages of their files: {error}");
                }
            });
        }
        self.on
    }

    /// True if batches read lists ahead, too: always if the run says so, or else if these exceed half of the memory. Others
    /// are in the system's cache once they were read, as features do not take their place.
    pub fn has_lists(&self) -> bool {
        self.on && self.lists
    }

    /// The part of `memory` for rows of this graph, by their bytes among those of all graphs.
    fn share(&self, memory: u64) -> u64 {
        let all = u128::from(self.all_rows.load(Ordering::Relaxed).max(1));
        (u128::from(memory) * u128::from(self.files.rows) / all) as u64
    }

    /// Bytes for rows of features, of what is free by now, when the model and its optimizer have theirs, and of what lists
    /// leave of it. A quarter and a gigabyte at least, but no more than half, is for batches and evaluations.
    fn room(&self) -> u64 {
        let free = available().map_or(0, |memory| memory.left);
        let free = (free - self.files.lists.min(free / 2)) / sharers();
        let others = (free / 4).max(GIB.min(free / 2));
        free - others
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        if self.on {
            self.all_rows.fetch_sub(self.files.rows, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use gnarl_config::RunConfig;

    use super::*;

    fn with(asked: Asked, files: Files) -> ReadAhead {
        let mut config = RunConfig::default();
        config.dataset.read_ahead = asked;
        ReadAhead::new(&config.dataset, files)
    }

    fn features(features: u64) -> Files {
        Files { lists: 0, features, rows: features }
    }

    #[test]
    fn only_files_that_exceed_memory_are_read_ahead_unless_asked() {
        let on = |asked, bytes| with(asked, features(bytes)).on;
        assert!(!on(Asked::Auto, 0));
        assert!(!on(Asked::Auto, 1 << 20));
        assert!(on(Asked::Auto, 1 << 60));
        assert!(with(Asked::Auto, Files { lists: 1 << 60, ..Files::default() }).on);
        assert!(on(Asked::Always, 0));
        assert!(!on(Asked::Never, 1 << 60));
    }

    #[test]
    fn lists_that_fit_are_left_to_the_system() {
        let few = Files { lists: 1 << 20, ..features(1 << 60) };
        let many = Files { lists: 1 << 60, ..Files::default() };
        assert!(with(Asked::Auto, few).on && !with(Asked::Auto, few).has_lists());
        assert!(with(Asked::Auto, many).has_lists() && with(Asked::Always, few).has_lists());
        assert!(!with(Asked::Never, many).has_lists());
    }

    #[test]
    fn files_are_prepared_once() {
        let mut told = Vec::new();
        let mut config = RunConfig::default();
        config.dataset.read_ahead = Asked::Always;
        config.dataset.cache_memory = Some(bytesize::ByteSize(1000));
        let ahead = ReadAhead::beside(&Arc::default(), &config.dataset, features(1 << 20));
        let mut tell = |memory| {
            told.push(memory);
            Ok(())
        };
        assert!(ahead.before_batch(&mut tell));
        assert!(ahead.before_batch(&mut tell));
        assert!(!ReadAhead::default().before_batch(&mut tell));
        assert_eq!(told, [1000]);
    }

    #[test]
    fn graphs_of_a_process_share_the_memory_for_rows() {
        let mut config = RunConfig::default();
        config.dataset.read_ahead = Asked::Always;
        config.dataset.cache_memory = Some(bytesize::ByteSize(1000));
        let all = Arc::default();
        let opened = |files| ReadAhead::beside(&all, &config.dataset, files);
        let large = opened(features(3 << 20));
        let small = opened(features(1 << 20));
        let sparse = opened(Files { features: 1 << 20, ..Files::default() });
        let told = |ahead: &ReadAhead| {
            let mut told = None;
            ahead.before_batch(|memory| {
                told = Some(memory);
                Ok(())
            });
            told.unwrap()
        };
        assert_eq!((told(&large), told(&sparse)), (750, 0));
        drop(large);
        assert_eq!(told(&small), 1000, "alone");
    }

    #[test]
    fn rows_leave_memory_to_lists_and_batches() {
        let limit = available().unwrap().limit;
        let all = with(Asked::Always, features(1 << 60));
        assert!(all.room() <= limit / 4 * 3);
        let lists = with(Asked::Always, Files { lists: 1 << 60, ..features(1 << 60) });
        assert!(lists.room() <= limit / 8 * 3);
    }
}
