//! Tables as Parquet, written by groups of rows.

mod group;
mod schema;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnarl_common::{Error, Kind as ErrorKind, Result, ResultExt};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;

use super::format::Format;
use super::table::{Cells, Column};
use group::Group;

/// Bytes of cells collected before they are written as a group, which readers fetch as a whole.
const GROUP: usize = 64 << 20;

/// A Parquet file being written.
pub(super) struct ParquetTable {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
    group: Group,
    /// Bytes of cells in a group.
    limit: usize,
}

/// Starts a table at `path`.
///
/// # Errors
/// If the file cannot be made.
pub(super) fn create(path: &Path, columns: &[Column]) -> Result<Box<dyn Format>> {
    Ok(Box::new(ParquetTable::new(path, columns, GROUP)?))
}

impl ParquetTable {
    /// Starts a table at `path` whose groups have `limit` bytes of cells or a little more.
    pub fn new(path: &Path, columns: &[Column], limit: usize) -> Result<Self> {
        let file = File::create(path).at(path)?;
        let schema = schema::schema(columns).map_err(|e| failed(path, e))?;
        let properties = Arc::new(schema::properties(columns));
        let writer = SerializedFileWriter::new(file, Arc::new(schema), properties)
            .map_err(|e| failed(path, e))?;
        Ok(Self { path: path.into(), writer, group: Group::new(columns), limit })
    }

    /// Writes the collected rows.
    fn flush(&mut self) -> parquet::errors::Result<()> {
        let mut group = self.writer.next_row_group()?;
        for cells in self.group.take() {
            let column = group.next_column()?;
            let mut column = column.expect("the schema is made of the same columns");
            cells.write(&mut column)?;
            column.close()?;
        }
        group.close()?;
        Ok(())
    }
}

impl Format for ParquetTable {
    fn append(&mut self, cells: &[Cells<'_>], rows: usize) -> Result<()> {
        let mut start = 0;
        while start < rows {
            let end = rows.min(start + self.group.room(self.limit));
            self.group.extend(cells, start..end);
            start = end;
            if self.group.bytes() >= self.limit {
                self.flush().map_err(|e| failed(&self.path, e))?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.group.bytes() > 0 {
            self.flush().map_err(|e| failed(&self.path, e))?;
        }
        self.writer.close().map_err(|e| failed(&self.path, e))?;
        Ok(())
    }
}

fn failed(path: &Path, e: ParquetError) -> Error {
    let other =
        |e: &dyn std::fmt::Display| Error::new(ErrorKind::Io, format!("{}: {e}", path.display()));
    match e {
        ParquetError::External(e) => match e.downcast::<std::io::Error>() {
            Ok(e) => Error::io(path, *e),
            Err(e) => other(&e),
        },
        e => other(&e),
    }
}
