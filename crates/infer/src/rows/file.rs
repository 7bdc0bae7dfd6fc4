//! Rows in a file without a name, which the system deletes with the process.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnarl_common::{Buf, Error, Result};
use memmap2::Mmap;

/// Bytes written at a time.
const BUFFER: usize = 1 << 20;

/// Rows of one width, being written.
pub(super) struct Writer {
    folder: PathBuf,
    file: BufWriter<File>,
    width: usize,
    values: usize,
}

/// Rows of one width, mapped.
#[derive(Debug)]
pub(super) struct Rows {
    pub width: usize,
    values: Option<Buf<f32>>,
}

impl Writer {
    /// A file in `folder` for rows of `width` values.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(folder: &Path, width: usize) -> Result<Self> {
        let file = tempfile::tempfile_in(folder).map_err(|e| failed(folder, e))?;
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(Self { folder: folder.into(), file, width, values: 0 })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// If the disk is full, or fails.
    pub fn append(&mut self, rows: &[f32]) -> Result<()> {
        self.values += rows.len();
        self.file.write_all(bytemuck::cast_slice(rows)).map_err(|e| failed(&self.folder, e))
    }

    /// The rows, mapped.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn finish(self) -> Result<Rows> {
        let Self { folder, file, width, values } = self;
        let file = file.into_inner().map_err(|e| failed(&folder, e.into_error()))?;
        if values == 0 {
            return Ok(Rows { width, values: None });
        }
        // SAFETY: the file has no name, so that no other process can open or truncate it, and this one only maps it.
        // Reading it row by row instead would take a system call for each of a range's inputs.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| failed(&folder, e))?;
        let values = Buf::mapped(Arc::new(map), 0, values);
        let values = values.ok_or_else(|| Error::invalid("rows of a layer are incomplete"))?;
        Ok(Rows { width, values: Some(values) })
    }
}

impl Rows {
    /// All rows.
    pub fn values(&self) -> &[f32] {
        self.values.as_deref().unwrap_or_default()
    }
}

fn failed(folder: &Path, error: std::io::Error) -> Error {
    Error::io(folder, error).context("keeping the rows of a layer").hint(
        "rows beyond the memory of an inference go there: name a folder with more room by TMPDIR",
    )
}
