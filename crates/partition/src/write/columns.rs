//! Columns of directories other than datasets: id maps, topology of vertex-cut parts, buckets.

use std::path::Path;

use gnarl_common::error::Result;
use gnarl_common::npy::NpyWriter;
use gnarl_common::{DType, Element, NpyScatter};
use gnarl_graph::ColumnSpec;

fn file_name(stem: &str, name: &str) -> String {
    if stem.is_empty() { format!("{name}.npy") } else { format!("{stem}.{name}.npy") }
}

/// A column `name` in `<stem>.<name>.npy`.
pub(crate) struct NamedColumn<T> {
    name: String,
    file: String,
    writer: NpyWriter<T>,
    /// Buffered values: pushing single ones would each start a checksum.
    pending: Vec<T>,
}

/// Values written together.
const BATCH: usize = 1 << 12;

impl<T: Element> NamedColumn<T> {
    pub(crate) fn create(dir: &Path, stem: &str, name: &str, row: &[u64]) -> Result<Self> {
        let file = file_name(stem, name);
        let writer = NpyWriter::create(dir.join(&file), row)?;
        Ok(Self { name: name.into(), writer, file, pending: Vec::with_capacity(BATCH) })
    }

    #[inline]
    pub(crate) fn push(&mut self, values: &[T]) -> Result<()> {
        self.pending.extend_from_slice(values);
        if self.pending.len() < BATCH { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.push(&self.pending)?;
        self.pending.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<ColumnSpec> {
        self.flush()?;
        let (shape, crc32) = self.writer.finish()?;
        Ok(ColumnSpec { name: self.name, file: self.file, dtype: T::DTYPE, shape, crc32 })
    }
}

/// A column of integers as narrow as the largest of them allows, to be read as
/// [`Narrow`](gnarl_graph::Narrow).
pub(crate) enum NarrowColumn {
    U8(NamedColumn<u8>),
    U32(NamedColumn<u32>),
    U64(NamedColumn<u64>),
}

impl NarrowColumn {
    /// Values will be at most `largest`.
    pub(crate) fn create(dir: &Path, stem: &str, name: &str, largest: u64) -> Result<Self> {
        Ok(if largest <= u8::MAX.into() {
            Self::U8(NamedColumn::create(dir, stem, name, &[])?)
        } else if largest <= u32::MAX.into() {
            Self::U32(NamedColumn::create(dir, stem, name, &[])?)
        } else {
            Self::U64(NamedColumn::create(dir, stem, name, &[])?)
        })
    }

    #[inline]
    pub(crate) fn push(&mut self, value: u64) -> Result<()> {
        match self {
            Self::U8(column) => column.push(&[value as u8]),
            Self::U32(column) => column.push(&[value as u32]),
            Self::U64(column) => column.push(&[value]),
        }
    }

    pub(crate) fn finish(self) -> Result<ColumnSpec> {
        match self {
            Self::U8(column) => column.finish(),
            Self::U32(column) => column.finish(),
            Self::U64(column) => column.finish(),
        }
    }
}

/// A column of consecutive ranges that are filled concurrently.
pub(crate) struct ScatterColumn {
    name: String,
    file: String,
    dtype: DType,
    writer: NpyScatter,
}

impl ScatterColumn {
    pub(crate) fn create(
        dir: &Path,
        stem: &str,
        name: &str,
        (dtype, row): (DType, &[u64]),
        counts: &[u64],
        memory: u64,
    ) -> Result<Self> {
        let file = file_name(stem, name);
        let writer = NpyScatter::create(dir.join(&file), dtype, row, counts, memory)?;
        Ok(Self { name: name.into(), file, dtype, writer })
    }

    #[inline]
    pub(crate) fn push(&mut self, range: usize, row: &[u8]) -> Result<()> {
        self.writer.push(range, row)
    }

    /// The column, and the CRC-32 of each range.
    pub(crate) fn finish(self) -> Result<(ColumnSpec, Vec<u32>)> {
        let (shape, crc32, each) = self.writer.finish_ranges()?;
        let Self { name, file, dtype, .. } = self;
        Ok((ColumnSpec { name, file, dtype, shape, crc32 }, each))
    }
}
