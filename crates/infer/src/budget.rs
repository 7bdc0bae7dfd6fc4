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

    /// The folder for files.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }
}
