//! The memory of an inference.

use std::path::{Path, PathBuf};

use gnarl_common::memory::available;

/// Share of the memory available that a budget takes by default.
const SHARE: u64 = 4;

/// The memory of an inference, and a folder for rows beyond it.
#[derive(Debug, Clone)]
pub struct Budget {
    bytes: u64,
    scratch: PathBuf,
}

impl Budget {
    /// So many bytes, and the system's folder for temporary files. A range has a node at least: the inputs of the node
    /// with the most neighbors are in memory whatever the budget.
    pub fn new(bytes: u64) -> Self {
        Self { bytes, scratch: std::env::temp_dir() }
    }

    /// A quarter of the memory available to this process, or 1 GiB where it is unknown.
    pub fn of_system() -> Self {
        Self::new(available().map_or(1 << 30, |memory| memory.left / SHARE))
    }

    /// The same memory, with files in `folder`, which exists.
    pub fn with_scratch(self, folder: impl Into<PathBuf>) -> Self {
        Self { scratch: folder.into(), ..self }
    }

    /// Bytes for rows between two layers.
    pub fn rows(&self) -> u64 {
        self.bytes / 2
    }

    /// Bytes for the inputs of ranges: one that is computed, and those gathered ahead.
    pub fn ranges(&self) -> u64 {
        self.bytes / 2
    }

    /// Bytes for a sweep: its sums and the rows that come by. It leaves none to rows, which are in files then; those of the
    /// layer before may be `in_memory` already.
    pub(crate) fn sweep(&self, in_memory: bool) -> u64 {
        let before = if in_memory { self.rows() / 2 } else { 0 };
        self.bytes - self.ranges_of_sweep() - before
    }

    /// Bytes for the ranges of nodes whose sums a sweep made.
    pub(crate) fn ranges_of_sweep(&self) -> u64 {
        self.ranges() / 4
    }

    /// Bytes of memory for pages of files, where `left` is free.
    pub(crate) fn pages(&self, left: Option<u64>) -> u64 {
        left.map_or(u64::MAX, |left| left.saturating_sub(self.bytes))
    }

    /// The folder for files.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }
}
