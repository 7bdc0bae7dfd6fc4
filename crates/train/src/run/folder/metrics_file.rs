//! `metrics.jsonl` while lines are appended.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use gnarl_common::{Result, ResultExt};

use crate::run::checkpoint::{Lines, atomic_write};

/// The file, with the checksum of all its lines.
#[derive(Debug)]
pub(super) struct MetricsFile {
    file: File,
    count: usize,
    crc: crc32fast::Hasher,
}

impl MetricsFile {
    /// Begins the file at `path` anew, with `text` of `count` lines.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn begin(path: &Path, text: &str, count: usize) -> Result<Self> {
        atomic_write(path, text.as_bytes())?;
        let file = File::options().append(true).open(path).at(path)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(text.as_bytes());
        Ok(Self { file, count, crc })
    }

    /// Appends a line, which ends with a newline, to the file, which is at `path`.
    ///
    /// # Errors
    /// If the disk fails.
    pub(super) fn append(&mut self, path: &Path, line: &str) -> Result<()> {
        self.file.write_all(line.as_bytes()).at(path)?;
        self.crc.update(line.as_bytes());
        self.count += 1;
        Ok(())
    }

    /// Flushes all lines to disk, and returns what they are.
    ///
    /// # Errors
    /// If the disk fails.
    pub(super) fn sync(&self, path: &Path) -> Result<Lines> {
        self.file.sync_data().at(path)?;
        Ok(Lines { count: self.count, crc32: self.crc.clone().finalize() })
    }
}
