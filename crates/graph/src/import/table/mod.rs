//! Tables of nodes and edges: CSV, TSV and Parquet behind one trait.

mod csv;
mod edges;
mod labels;
mod numbers;
mod options;
mod parquet;
mod parquet_values;
mod schema;
mod transform;
mod typed;

use std::path::Path;

pub(super) use csv::{CsvFormat, CsvReader};
pub use options::{EdgeTable, IdKind, NodeTable, TableOptions};
pub use transform::{Feature, Impute, Transform};
pub use typed::tables;

use super::ids::StringIds;
use crate::error::{Error, Result};

/// What a column is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    Integer,
    /// An empty cell is NaN. Where a file knows dates, they are days since 1970-01-01.
    Number,
    /// Numbers too, but dates are whole seconds since 1970-01-01.
    Seconds,
    Text,
}

/// The values of one column of a batch.
#[derive(Debug)]
pub(super) enum Values {
    Integer(Vec<i64>),
    Number(Vec<f64>),
    /// All cells' bytes, and where each ends.
    Text(Vec<u8>, Vec<usize>),
}

impl Values {
    fn new(cell: Cell) -> Self {
        match cell {
            Cell::Integer => Self::Integer(Vec::new()),
            Cell::Number | Cell::Seconds => Self::Number(Vec::new()),
            Cell::Text => Self::Text(Vec::new(), Vec::new()),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Integer(values) => values.clear(),
            Self::Number(values) => values.clear(),
            Self::Text(bytes, ends) => {
                bytes.clear();
                ends.clear();
            }
        }
    }

    /// The integers; empty for other columns.
    pub fn integers(&self) -> &[i64] {
        if let Self::Integer(values) = self { values } else { &[] }
    }

    /// The numbers; empty for other columns.
    pub fn numbers(&self) -> &[f64] {
        if let Self::Number(values) = self { values } else { &[] }
    }

    /// The text in `row`.
    pub fn text(&self, row: usize) -> &[u8] {
        let Self::Text(bytes, ends) = self else { return b"" };
        &bytes[if row == 0 { 0 } else { ends[row - 1] }..ends[row]]
    }

    fn push_text(&mut self, text: &[u8]) {
        if let Self::Text(bytes, ends) = self {
            bytes.extend_from_slice(text);
            ends.push(bytes.len());
        }
    }
}

/// Rows read together, as the columns that were selected.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub columns: Vec<Values>,
    /// Line or row number of each row.
    pub places: Vec<u64>,
}

impl Batch {
    pub fn rows(&self) -> usize {
        self.places.len()
    }

    fn start(&mut self, cells: &[(usize, Cell)]) {
        self.columns.resize_with(cells.len(), || Values::new(Cell::Text));
        for (values, &(_, cell)) in self.columns.iter_mut().zip(cells) {
            let fits = matches!(
                (&*values, cell),
                (Values::Integer(_), Cell::Integer)
                    | (Values::Number(_), Cell::Number | Cell::Seconds)
                    | (Values::Text(..), Cell::Text)
            );
            if fits { values.clear() } else { *values = Values::new(cell) }
        }
        self.places.clear();
    }
}

/// The two ends of a batch of edges within one node type of string ids, numbered row by row.
pub(super) fn string_pairs(
    batch: &Batch,
    columns: (usize, usize),
    ids: &mut StringIds,
    memory: u64,
) -> Result<(Vec<i64>, Vec<i64>)> {
    let (mut src, mut dst) = (Vec::new(), Vec::new());
    for row in 0..batch.rows() {
        src.push(ids.insert(batch.columns[columns.0].text(row), memory)?.0 as i64);
        dst.push(ids.insert(batch.columns[columns.1].text(row), memory)?.0 as i64);
    }
    Ok((src, dst))
}

/// Rows in a batch, at most.
const BATCH_ROWS: usize = 1 << 15;

/// A table, read from the first row to the last.
pub(super) trait TableReader {
    /// What messages call it.
    fn name(&self) -> &str;
    /// Names of the columns; positions where there is no header.
    fn columns(&self) -> &[String];
    /// Whether the columns have names of their own.
    fn has_header(&self) -> bool;
    /// Whether every first value of the column is an integer, as far as can be told at once.
    fn looks_integer(&self, column: usize) -> bool;
    /// Whether the first value of the column is text, as far as can be told at once.
    fn looks_text(&self, column: usize) -> bool;
    /// Whether the file itself says that the column holds numbers, booleans or dates.
    fn is_numeric(&self, _column: usize) -> bool {
        false
    }
    /// How many numbers each cell of the column holds: more than one where cells are lists.
    fn width(&self, _column: usize) -> usize {
        1
    }
    /// Chooses what [`TableReader::next`] delivers.
    fn select(&mut self, cells: Vec<(usize, Cell)>) -> Result<()>;
    /// Replaces the batch by the next rows; `false` at the end.
    fn next(&mut self, batch: &mut Batch) -> Result<bool>;
    /// `file: line 7`, from a batch's places.
    fn place(&self, place: u64) -> String;

    /// Finds a column by name.
    fn find(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|c| c == name)
    }

    /// Finds a column by name, or, without a header, `position`.
    fn require(&self, name: &str, position: usize) -> Result<usize> {
        let found = match self.find(name) {
            None if !self.has_header() && position < self.columns().len() => Some(position),
            found => found,
        };
        found.ok_or_else(|| {
            Error::invalid(format!("{}: no column '{name}'", self.name()))
                .hint(format!("it has: {}", self.columns().join(", ")))
        })
    }
}

/// Opens the table at `path`: Parquet by its extension, else delimited text.
pub(super) fn open(path: &Path, format: &CsvFormat, expect: &str) -> Result<Box<dyn TableReader>> {
    let parquet = path.extension().is_some_and(|e| e == "parquet" || e == "pq");
    let reader: Box<dyn TableReader> = match parquet {
        true => Box::new(parquet::ParquetReader::open(path)?),
        false => Box::new(CsvReader::open(path, format, expect)?),
    };
    let columns = reader.columns();
    match (0..columns.len()).find(|&i| columns[..i].contains(&columns[i])) {
        Some(twice) => Err(Error::invalid(format!(
            "{}: column '{}' is there twice",
            reader.name(),
            columns[twice]
        ))
        .hint("name each column once")),
        None => Ok(reader),
    }
}
