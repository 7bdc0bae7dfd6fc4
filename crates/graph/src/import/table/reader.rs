//! The trait of tables, read in batches of rows.

use gnarl_common::Result;

use super::header::Header;

/// The requested type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::import) enum Cell {
    Integer,
    /// Numbers; an empty cell is NaN. Typed dates are days since 1970-01-01.
    Number,
    /// Numbers, with dates as whole seconds since 1970-01-01.
    Seconds,
    Text,
}

/// The values of one column of a batch.
#[derive(Debug)]
pub(in crate::import) enum Values {
    Integer(Vec<i64>),
    Number(Vec<f64>),
    /// All cells' bytes, and the end of each.
    Text(Vec<u8>, Vec<usize>),
}

impl Values {
    pub(super) fn new(cell: Cell) -> Self {
        match cell {
            Cell::Integer => Self::Integer(Vec::new()),
            Cell::Number | Cell::Seconds => Self::Number(Vec::new()),
            Cell::Text => Self::Text(Vec::new(), Vec::new()),
        }
    }

    pub(super) fn clear(&mut self) {
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

    pub(super) fn push_text(&mut self, text: &[u8]) {
        if let Self::Text(bytes, ends) = self {
            bytes.extend_from_slice(text);
            ends.push(bytes.len());
        }
    }
}

/// A batch of rows, as the selected columns.
#[derive(Debug, Default)]
pub(in crate::import) struct Batch {
    pub columns: Vec<Values>,
    /// Line or row number of each row.
    pub places: Vec<u64>,
}

impl Batch {
    pub fn rows(&self) -> usize {
        self.places.len()
    }

    pub(super) fn start(&mut self, cells: &[(usize, Cell)]) {
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

/// Rows in a batch, at most.
pub(super) const BATCH_ROWS: usize = 1 << 15;

/// A table that is read from the first row to the last.
pub(in crate::import) trait TableReader {
    /// Name in messages.
    fn name(&self) -> &str;
    /// Names of the columns; positions where there is no header.
    fn columns(&self) -> &[String];
    /// The reason for or against a header.
    fn header(&self) -> Header;
    /// Field delimiter of text.
    fn delimiter(&self) -> Option<u8> {
        None
    }
    /// Returns whether the first value of the column is a number with a fraction or an exponent.
    fn looks_fraction(&self, column: usize) -> bool;
    /// Returns whether every sampled value of the column is an integer.
    fn looks_integer(&self, column: usize) -> bool;
    /// Returns whether the first value of the column is text, as far as known from the sample.
    fn looks_text(&self, column: usize) -> bool;
    /// Returns whether the file declares the column as numbers, booleans or dates.
    fn is_numeric(&self, _column: usize) -> bool {
        false
    }
    /// Number of values per cell of the column: more than one where cells are lists.
    fn width(&self, _column: usize) -> usize {
        1
    }
    /// Selects the columns of [`TableReader::next`].
    fn select(&mut self, cells: Vec<(usize, Cell)>) -> Result<()>;
    /// Replaces the batch by the next rows; `false` at the end.
    fn next(&mut self, batch: &mut Batch) -> Result<bool>;
    /// `file: line 7`, from a batch's places.
    fn place(&self, place: u64) -> String;

    /// Returns whether the columns have names of their own.
    fn has_header(&self) -> bool {
        self.header() != Header::Absent
    }

    /// Finds a column by name.
    fn find(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|c| c == name)
    }
}
