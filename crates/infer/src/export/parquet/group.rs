//! Rows collected for one group: Parquet has a group's columns one after the other.

use std::ops::Range;

use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedColumnWriter;

use crate::export::table::{Cells, Column, Kind};

/// Values passed to a column writer at once; its levels are as many.
const BATCH: usize = 1 << 14;
/// Rows collected before the bytes of a group are compared with the limit.
const ROWS: usize = 1 << 10;

/// The collected rows.
pub(super) struct Group {
    columns: Vec<Collected>,
    /// Bytes of a row without its texts, but with where they end.
    row_bytes: usize,
    bytes: usize,
}

/// Cells of one column.
pub(super) enum Collected {
    Integers(Vec<i64>),
    Floats(Vec<f32>),
    Lists { values: Vec<f32>, width: usize },
    Texts { bytes: Vec<u8>, ends: Vec<usize> },
}

impl Group {
    pub fn new(columns: &[Column]) -> Self {
        let bytes = |column: &Column| match column.kind {
            Kind::Integer | Kind::Text => 8,
            Kind::Float => 4,
            Kind::List(width) => 4 * width,
        };
        let row_bytes = columns.iter().map(bytes).sum();
        let columns = columns.iter().map(|column| match column.kind {
            Kind::Integer => Collected::Integers(Vec::new()),
            Kind::Float => Collected::Floats(Vec::new()),
            Kind::List(width) => Collected::Lists { values: Vec::new(), width },
            Kind::Text => Collected::Texts { bytes: Vec::new(), ends: Vec::new() },
        });
        Self { columns: columns.collect(), row_bytes, bytes: 0 }
    }

    /// Bytes of the collected cells.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Rows to collect next, at least one, so that the cells have about `limit` bytes at most.
    pub fn room(&self, limit: usize) -> usize {
        (limit.saturating_sub(self.bytes) / self.row_bytes).clamp(1, ROWS)
    }

    /// Collects the given rows of `cells`.
    pub fn extend(&mut self, cells: &[Cells<'_>], rows: Range<usize>) {
        self.bytes += rows.len() * self.row_bytes;
        for (column, cells) in self.columns.iter_mut().zip(cells) {
            match (column, cells) {
                (Collected::Integers(all), Cells::Integers(values)) => {
                    all.extend_from_slice(&values[rows.clone()]);
                }
                (Collected::Floats(all), Cells::Floats(values)) => {
                    all.extend_from_slice(&values[rows.clone()]);
                }
                (Collected::Lists { values: all, width }, Cells::Lists(values)) => {
                    all.extend_from_slice(&values[rows.start * *width..rows.end * *width]);
                }
                (Collected::Texts { bytes, ends }, Cells::Texts(texts)) => {
                    let before = bytes.len();
                    for text in &texts[rows.clone()] {
                        bytes.extend_from_slice(text.as_bytes());
                        ends.push(bytes.len());
                    }
                    self.bytes += bytes.len() - before;
                }
                _ => unreachable!("cells were compared with columns"),
            }
        }
    }

    /// Hands out the columns in their order, to be written; the group is empty afterwards.
    pub fn take(&mut self) -> impl Iterator<Item = &mut Collected> {
        self.bytes = 0;
        self.columns.iter_mut()
    }
}

impl Collected {
    /// Writes the cells and forgets them.
    pub fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self {
            Self::Integers(values) => {
                column.typed::<Int64Type>().write_batch(values, None, None)?;
                values.clear();
            }
            Self::Floats(values) => {
                column.typed::<FloatType>().write_batch(values, None, None)?;
                values.clear();
            }
            Self::Lists { values, width } => {
                write_lists(values, *width, column.typed())?;
                values.clear();
            }
            Self::Texts { bytes, ends } => {
                write_texts(std::mem::take(bytes), ends, column.typed())?;
                ends.clear();
            }
        }
        Ok(())
    }
}

/// Writes lists of `width` values.
fn write_lists(
    values: &[f32],
    width: usize,
    column: &mut ColumnWriterImpl<'_, FloatType>,
) -> Result<()> {
    let batch = (BATCH / width).max(1) * width;
    // Every element exists, and the first of a list repeats nothing.
    let definition = vec![1; batch];
    let repetition: Vec<i16> = (0..batch).map(|i| i16::from(i % width != 0)).collect();
    for values in values.chunks(batch) {
        let (definition, repetition) = (&definition[..values.len()], &repetition[..values.len()]);
        column.write_batch(values, Some(definition), Some(repetition))?;
    }
    Ok(())
}

/// Writes the texts in `bytes` that end at `ends`.
fn write_texts(
    bytes: Vec<u8>,
    ends: &[usize],
    column: &mut ColumnWriterImpl<'_, ByteArrayType>,
) -> Result<()> {
    // Slices share the bytes.
    let bytes = ByteArray::from(bytes);
    let mut start = 0;
    for ends in ends.chunks(BATCH) {
        let mut texts = Vec::with_capacity(ends.len());
        for &end in ends {
            texts.push(bytes.slice(start, end - start));
            start = end;
        }
        column.write_batch(&texts, None, None)?;
    }
    Ok(())
}
