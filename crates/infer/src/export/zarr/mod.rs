//! Tables as Zarr version 3: a group with an array per column, written chunk by chunk.

mod chunk;
mod column;
mod limits;
#[cfg(test)]
mod tests;

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnarl_common::{Error, Kind as ErrorKind, Result};
use rayon::prelude::*;
use serde_json::json;
use zarrs::filesystem::FilesystemStore;
use zarrs::group::GroupBuilder;

use super::format::Format;
use super::table::{Cells, Column};
use chunk::Chunk;
use column::ColumnArray;
use limits::Limits;

/// Chunks written at once: each waits for the disk. They have as many bytes as a group of Parquet.
const AT_ONCE: usize = 4;

/// A group being written.
struct ZarrTable {
    folder: PathBuf,
    columns: Vec<ColumnArray>,
    /// Chunks to be written: of a column, under a number.
    full: Vec<(usize, u64, Chunk)>,
}

/// Starts a table of `rows` rows in `folder`, which exists.
///
/// # Errors
/// If a file cannot be made.
pub(super) fn create(folder: &Path, columns: &[Column], rows: u64) -> Result<Box<dyn Format>> {
    Ok(Box::new(ZarrTable::new(folder, columns, rows, Limits::default())?))
}

impl ZarrTable {
    /// Starts a table whose chunks have at most `limits`.
    fn new(folder: &Path, columns: &[Column], rows: u64, limits: Limits) -> Result<Self> {
        let store = FilesystemStore::new(folder).map_err(|e| failed(folder, &e))?;
        let store = Arc::new(store);
        // The order of columns is nowhere else: a group's arrays have none.
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let maker = format!("gnarl {}", env!("CARGO_PKG_VERSION"));
        let attributes = [
            ("written_by".to_string(), json!(maker)),
            ("rows".to_string(), json!(rows)),
            ("columns".to_string(), json!(names)),
        ];
        let group = GroupBuilder::new()
            .attributes(attributes.into_iter().collect())
            .build(store.clone(), "/")
            .map_err(|e| failed(folder, &e))?;
        group.store_metadata().map_err(|e| failed(folder, &e))?;
        let columns = columns.iter().map(|column| {
            ColumnArray::create(&store, column, rows, limits)
                .map_err(|e| failed(&folder.join(&column.name), &*e))
        });
        let columns = columns.collect::<Result<_>>()?;
        Ok(Self { folder: folder.into(), columns, full: Vec::new() })
    }

    /// Writes the full chunks, several at once.
    fn flush(&mut self) -> Result<()> {
        let full = std::mem::take(&mut self.full);
        full.into_par_iter().try_for_each(|(column, number, chunk)| {
            let column = &self.columns[column];
            let written = column.write(number, chunk);
            written.map_err(|e| failed(&self.folder.join(column.name()), &*e))
        })
    }
}

impl Format for ZarrTable {
    fn append(&mut self, cells: &[Cells<'_>], rows: usize) -> Result<()> {
        for i in 0..self.columns.len() {
            let mut start = 0;
            while start < rows {
                let column = &mut self.columns[i];
                let end = rows.min(start + column.room());
                column.extend(cells[i], start..end);
                start = end;
                if let Some((number, chunk)) = column.take_full() {
                    self.full.push((i, number, chunk));
                }
                if self.full.len() >= AT_ONCE {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        for (i, column) in self.columns.iter_mut().enumerate() {
            if let Some((number, chunk)) = column.take_rest() {
                self.full.push((i, number, chunk));
            }
        }
        self.flush()
    }
}

/// An error of the Zarr library at `path`; its text is that of the system where there is one below it.
fn failed(path: &Path, e: &(dyn StdError + 'static)) -> Error {
    Error::new(ErrorKind::Io, format!("{}: {e}", path.display()))
}
