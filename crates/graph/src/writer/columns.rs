//! Writers of single columns, and of the two id columns of an edge type.

use std::path::Path;

use gnarl_common::npy::NpyWriter;
use gnarl_common::{Element, Error, Result};

use crate::column::ColumnSpec;
use crate::manifest::Triple;

/// Writes one column.
pub struct ColumnWriter<T> {
    name: String,
    file: String,
    writer: NpyWriter<T>,
}

impl<T: Element> ColumnWriter<T> {
    /// Starts `<stem>.<name>.npy` in `dir`.
    pub(crate) fn create(dir: &Path, stem: &str, name: &str, row: &[u64]) -> Result<Self> {
        let file = format!("{stem}.{name}.npy");
        Ok(Self { name: name.into(), writer: NpyWriter::create(dir.join(&file), row)?, file })
    }

    /// Appends values, whole rows or not.
    pub fn push(&mut self, values: &[T]) -> Result<()> {
        self.writer.push(values)
    }

    /// Completes the file and describes it.
    pub fn finish(self) -> Result<ColumnSpec> {
        let (shape, crc32) = self.writer.finish()?;
        Ok(ColumnSpec { name: self.name, file: self.file, dtype: T::DTYPE, shape, crc32 })
    }
}

/// Writes ids in the dataset's width, or offsets in the narrowest one.
pub(crate) enum IdWriter {
    U32(ColumnWriter<u32>),
    U64(ColumnWriter<u64>),
}

impl IdWriter {
    /// Starts `<stem>.<name>.npy` for values up to `largest`.
    pub(crate) fn narrow(dir: &Path, stem: &str, name: &str, largest: u64) -> Result<Self> {
        Ok(match u32::try_from(largest) {
            Ok(_) => Self::U32(ColumnWriter::create(dir, stem, name, &[])?),
            Err(_) => Self::U64(ColumnWriter::create(dir, stem, name, &[])?),
        })
    }

    pub(crate) fn push(&mut self, ids: &[u64]) -> Result<()> {
        match self {
            Self::U64(column) => column.push(ids),
            Self::U32(column) => {
                let mut narrow = [0u32; 1024];
                for chunk in ids.chunks(narrow.len()) {
                    for (n, &id) in narrow.iter_mut().zip(chunk) {
                        *n = id as u32;
                    }
                    column.push(&narrow[..chunk.len()])?;
                }
                Ok(())
            }
        }
    }

    pub(crate) fn finish(self) -> Result<ColumnSpec> {
        match self {
            Self::U32(column) => column.finish(),
            Self::U64(column) => column.finish(),
        }
    }
}

/// Writes the two id columns of an edge type.
pub struct EdgeWriter {
    triple: Triple,
    src: IdWriter,
    dst: IdWriter,
    limits: Option<(u64, u64)>,
    rows: u64,
    largest: Option<(u64, u64)>,
}

impl EdgeWriter {
    pub(super) fn new(
        triple: Triple,
        src: IdWriter,
        dst: IdWriter,
        limits: Option<(u64, u64)>,
    ) -> Self {
        Self { triple, src, dst, limits, rows: 0, largest: None }
    }

    /// Appends edges.
    ///
    /// # Errors
    /// If an id is out of range, with its row counted from the first edge pushed.
    pub fn push(&mut self, src: &[u64], dst: &[u64]) -> Result<()> {
        debug_assert_eq!(src.len(), dst.len());
        let widest = if matches!(self.src, IdWriter::U32(_)) { 1 << 32 } else { u64::MAX };
        let (src_limit, dst_limit) = self.limits.unwrap_or((widest, widest));
        let largest = self.largest.unwrap_or((0, 0));
        let max = (max_of(src, largest.0), max_of(dst, largest.1));
        if !src.is_empty() {
            self.largest = Some(max);
        }
        if max.0 >= src_limit || max.1 >= dst_limit {
            return Err(self.out_of_range(src, dst, src_limit, dst_limit));
        }
        self.rows += src.len() as u64;
        // Checksums and narrowing take as long as the writing itself: one thread per column.
        let (to_src, to_dst) = (&mut self.src, &mut self.dst);
        let (a, b) = rayon::join(|| to_src.push(src), || to_dst.push(dst));
        a.and(b)
    }

    fn out_of_range(&self, src: &[u64], dst: &[u64], src_limit: u64, dst_limit: u64) -> Error {
        let bad = src.iter().zip(dst).position(|(&s, &d)| s >= src_limit || d >= dst_limit);
        let row = bad.unwrap_or(0);
        let (end, id, limit) = match src[row] >= src_limit {
            true => ("source", src[row], src_limit),
            false => ("destination", dst[row], dst_limit),
        };
        let row = self.rows + row as u64;
        Error::invalid(format!(
            "{}: edge {row}: {end} {id} is not below the number of nodes, {limit}",
            self.triple
        ))
    }

    /// The largest source and destination so far, if any edge was pushed.
    pub fn largest(&self) -> Option<(u64, u64)> {
        self.largest
    }

    /// Completes both columns.
    pub fn finish(self) -> Result<Vec<ColumnSpec>> {
        Ok(vec![self.src.finish()?, self.dst.finish()?])
    }
}

fn max_of(ids: &[u64], start: u64) -> u64 {
    ids.iter().copied().fold(start, u64::max)
}
