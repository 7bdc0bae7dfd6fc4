//! Reading ahead of batches, where mapped files exceed the memory that is free.
//!
//! A batch reads lists and features here and there: where they are not in memory, page after page, each a wait for the disk
//! and for the neighbors that the system reads with it. Here the pages of a batch are read many at a time, and no others.

use std::sync::Once;

use gnarl_common::memory::{available, gib};
use gnarl_config::ReadAhead as Asked;

/// How the files of a graph are read.
pub(crate) struct ReadAhead {
    /// True if batches read ahead.
    on: bool,
    /// What there is to read, and the memory for it.
    shortage: String,
    begun: Once,
}

impl Default for ReadAhead {
    /// Batches do not read ahead.
    fn default() -> Self {
        Self { on: false, shortage: String::new(), begun: Once::new() }
    }
}

impl ReadAhead {
    /// As asked; `auto` reads ahead of batches where mapped files of `bytes` exceed three quarters of the memory that is
    /// free: the rest is for batches, the model and its optimizer.
    pub fn new(asked: Asked, bytes: u64) -> Self {
        let left = available().map(|memory| memory.left);
        let exceeds = bytes > 0 && left.is_some_and(|left| bytes > left / 4 * 3);
        let on = match asked {
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
        Self { on, shortage, begun: Once::new() }
    }

    /// True if batches read ahead.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Called before a batch reads features: `advise`, called before the first, tells the system that reads are random, for
    /// the rest of the run. Returns true if batches read ahead.
    pub fn before_batch(&self, advise: impl FnOnce()) -> bool {
        if self.on {
            self.begun.call_once(|| {
                tracing::info!("{}: batches read them ahead", self.shortage);
                advise();
            });
        }
        self.on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_exceed_memory_are_read_ahead_unless_asked() {
        let on = |asked, bytes| ReadAhead::new(asked, bytes).is_on();
        assert!(!on(Asked::Auto, 0));
        assert!(!on(Asked::Auto, 1 << 20));
        assert!(on(Asked::Auto, 1 << 60));
        assert!(on(Asked::Always, 0));
        assert!(!on(Asked::Never, 1 << 60));
    }

    #[test]
    fn the_system_is_told_once() {
        let mut told = 0;
        let ahead = ReadAhead::new(Asked::Always, 0);
        assert!(ahead.before_batch(|| told += 1));
        assert!(ahead.before_batch(|| told += 1));
        assert!(!ReadAhead::default().before_batch(|| told += 1));
        assert_eq!(told, 1);
    }
}
