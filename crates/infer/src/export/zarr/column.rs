//! The array of one column.

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use zarrs::array::codec::ZstdCodec;
use zarrs::array::{
    Array, ArrayBuilder, ArrayBytes, ArrayBytesOffsets, ArrayMetadataOptions, data_type,
};
use zarrs::filesystem::FilesystemStore;

use super::chunk::Chunk;
use super::limits::Limits;
use crate::export::table::{Cells, Column, Kind};

/// Level of compression.
const LEVEL: i32 = 1;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// An array, and the rows that are collected for its next chunk.
pub(super) struct ColumnArray {
    name: String,
    kind: Kind,
    array: Array<FilesystemStore>,
    /// Rows of a chunk.
    chunk_rows: usize,
    /// Number of the next chunk.
    next: u64,
    chunk: Chunk,
}

impl ColumnArray {
    /// Starts the array of `column`, of `rows` rows, under its name in the group of `store`.
    ///
    /// # Errors
    /// If the name is none of an array, or its metadata cannot be written.
    pub fn create(
        store: &Arc<FilesystemStore>,
        Column { name, kind }: &Column,
        rows: u64,
        limits: Limits,
    ) -> Result<Self> {
        let chunk_rows = chunk_rows(*kind, rows, limits);
        let mut shape = vec![rows];
        let mut chunk_shape = vec![chunk_rows as u64];
        let mut dimensions = vec!["row".to_string()];
        if let Kind::List(width) = *kind {
            shape.push(width as u64);
            chunk_shape.push(width as u64);
            // Not the name of the array, which would make it the coordinate of the dimension.
            dimensions.push(format!("{name}_element"));
        }
        let mut builder = match kind {
            Kind::Integer => ArrayBuilder::new(shape, chunk_shape, data_type::int64(), 0_i64),
            Kind::Text => ArrayBuilder::new(shape, chunk_shape, data_type::string(), ""),
            Kind::Float | Kind::List(_) => {
                ArrayBuilder::new(shape, chunk_shape, data_type::float32(), 0_f32)
            }
        };
        builder.dimension_names(Some(dimensions));
        // Random numbers do not compress. 250,000 lists of 128 normally distributed values, by one
        // core of a busy two-core host, medians of four, relative to the bytes of the values:
        //
        // | codec  | size  | write    | read       |
        // |--------|-------|----------|------------|
        // | none   | 100 % | 519 MB/s | 1,055 MB/s |
        // | zstd 1 |  92 % | 231 MB/s |   250 MB/s |
        // | zstd 3 |  92 % | 100 MB/s |   215 MB/s |
        //
        // A twelfth of the size is not worth three quarters of the speed of readers.
        if !matches!(kind, Kind::List(_)) {
            builder.bytes_to_bytes_codecs(vec![Arc::new(ZstdCodec::new(LEVEL, false))]);
        }
        let array = builder.build(store.clone(), &format!("/{name}"))?;
        let options = ArrayMetadataOptions::default().with_include_zarrs_metadata(false);
        array.store_metadata_opt(&options)?;
        let chunk = Chunk::new(*kind);
        Ok(Self { name: name.clone(), kind: *kind, array, chunk_rows, next: 0, chunk })
    }

    /// The name of the column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Rows that the next chunk lacks, at least one.
    pub fn room(&self) -> usize {
        self.chunk_rows - self.chunk.rows()
    }

    /// Collects rows of `cells`, at most [`Self::room`].
    pub fn extend(&mut self, cells: Cells<'_>, rows: Range<usize>) {
        self.chunk.extend(cells, rows);
    }

    /// The collected chunk and its number, if it is full.
    pub fn take_full(&mut self) -> Option<(u64, Chunk)> {
        if self.chunk.rows() < self.chunk_rows {
            return None;
        }
        let chunk = std::mem::replace(&mut self.chunk, Chunk::new(self.kind));
        self.next += 1;
        Some((self.next - 1, chunk))
    }

    /// The last chunk and its number, if rows are left.
    pub fn take_rest(&mut self) -> Option<(u64, Chunk)> {
        if self.chunk.rows() == 0 {
            return None;
        }
        self.chunk.pad(self.chunk_rows);
        self.take_full()
    }

    /// Writes a full chunk under its number.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn write(&self, number: u64, chunk: Chunk) -> Result<()> {
        match chunk {
            Chunk::Integers(values) => self.array.store_chunk(&[number], values)?,
            Chunk::Floats { values, .. } => {
                let place = [number, 0];
                self.array.store_chunk(&place[..self.array.dimensionality()], values)?;
            }
            Chunk::Texts { bytes, ends } => {
                let texts = ArrayBytes::new_vlen(bytes, ArrayBytesOffsets::new(ends)?)?;
                self.array.store_chunk(&[number], texts)?;
            }
        }
        Ok(())
    }
}

/// Rows of a chunk: at most those of the table, since a chunk is stored in full.
fn chunk_rows(kind: Kind, rows: u64, limits: Limits) -> usize {
    let width = match kind {
        Kind::List(width) => width,
        Kind::Integer | Kind::Float | Kind::Text => 1,
    };
    let most = (limits.bytes / (4 * width)).min(limits.rows);
    usize::try_from(rows).unwrap_or(usize::MAX).min(most).max(1)
}
