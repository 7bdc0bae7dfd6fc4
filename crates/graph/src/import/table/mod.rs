//! Tables of nodes and edges: CSV, TSV and Parquet behind one trait.

mod carried;
mod csv;
mod edges;
mod facts;
mod feature;
mod fields;
mod fit;
mod header;
mod labels;
mod nodes;
mod numbers;
mod options;
mod parquet;
mod parquet_values;
mod roles;
mod schema;
mod taken;
mod transform;
mod typed;

use std::path::Path;

pub(super) use csv::CsvReader;
pub use facts::{TableColumn, TableFacts};
pub use feature::{Feature, Impute, Transform};
pub(super) use header::{CsvFormat, Expected, Header, called};
pub use options::{EdgeTable, IdKind, NodeTable, TableOptions};
pub use typed::tables;

use super::ids::StringIds;
use super::input::{FileKind, Input};
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
    reader: &dyn TableReader,
    batch: &Batch,
    columns: (usize, usize),
    ids: &mut StringIds,
    memory: u64,
) -> Result<(Vec<i64>, Vec<i64>)> {
    let (mut src, mut dst) = (Vec::new(), Vec::new());
    for row in 0..batch.rows() {
        for (column, nodes) in [(columns.0, &mut src), (columns.1, &mut dst)] {
            let id = text_id(reader, batch, column, row)?;
            nodes.push(ids.insert(id, memory)?.0 as i64);
        }
    }
    Ok((src, dst))
}

/// The string id in a row of a batch.
///
/// # Errors
/// If it is empty, naming the place.
pub(super) fn text_id<'a>(
    reader: &dyn TableReader,
    batch: &'a Batch,
    column: usize,
    row: usize,
) -> Result<&'a [u8]> {
    match batch.columns[column].text(row) {
        b"" => {
            Err(Error::invalid(format!("{}: an id is missing", reader.place(batch.places[row])))
                .hint("every node and both ends of every edge have an id; drop rows without"))
        }
        id => Ok(id),
    }
}

/// Rows in a batch, at most.
const BATCH_ROWS: usize = 1 << 15;

/// A table, read from the first row to the last.
pub(super) trait TableReader {
    /// What messages call it.
    fn name(&self) -> &str;
    /// Names of the columns; positions where there is no header.
    fn columns(&self) -> &[String];
    /// How it is known whether the columns have names of their own.
    fn header(&self) -> Header;
    /// Between fields of text.
    fn delimiter(&self) -> Option<u8> {
        None
    }
    /// Whether the first value of the column is a number with a fraction or an exponent.
    fn looks_fraction(&self, column: usize) -> bool;
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

    /// Whether the columns have names of their own.
    fn has_header(&self) -> bool {
        self.header() != Header::Absent
    }

    /// Finds a column by name.
    fn find(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|c| c == name)
    }
}

/// Opens the table at `path`, which should have the `expected` columns: Parquet if it begins so, else
/// delimited text.
pub(super) fn open(
    path: &Path,
    format: &CsvFormat,
    expected: &Expected<'_>,
) -> Result<Box<dyn TableReader>> {
    let input = Input::open(path)?;
    let parquet = path.extension().is_some_and(|e| e == "parquet" || e == "pq");
    let reader: Box<dyn TableReader> = if input.kind == FileKind::Parquet {
        Box::new(parquet::ParquetReader::open(path)?)
    } else if parquet {
        let (what, cure) = input.kind.described();
        let name = path.display();
        return Err(Error::invalid(format!("{name}: not a Parquet file: it begins like {what}"))
            .hint(format!("{cure}, under another name than .parquet")));
    } else {
        Box::new(CsvReader::expecting(input, path, format, expected)?)
    };
    let columns = reader.columns();
    // Columns without a name, as pandas leaves that of its index, are none that could be meant.
    let twice = |&i: &usize| !columns[i].is_empty() && columns[..i].contains(&columns[i]);
    match (0..columns.len()).find(twice) {
        Some(twice) => Err(Error::invalid(format!(
            "{}: column '{}' is there twice",
            reader.name(),
            columns[twice]
        ))
        .hint("name each column once")),
        None => Ok(reader),
    }
}
