//! Parquet files, read by batches of the selected columns.
//!
//! Columns are read by the parquet crate's own decoders, without Arrow arrays between them and the
//! values: its feature `arrow` takes longer to build than all else that reads a table.

mod cursor;
mod decimal;
mod hints;
mod kind;
mod leaf;
mod pages;
mod schema;
mod unit;
mod values;

use std::fs::File;
use std::path::Path;

use gnarl_common::{Error, Result, ResultExt};
use parquet::file::reader::{FileReader, SerializedFileReader};

use self::cursor::{Cursor, Misfit};
use self::kind::Kind;
use self::leaf::guarded;
use self::schema::{Column, columns};
use self::values::{Fault, integers, numbers, texts};
use super::header::Header;
use super::reader::{BATCH_ROWS, Batch, Cell, TableReader, Values};

/// A Parquet file with flat columns, or columns of lists of one length.
pub(super) struct ParquetReader {
    name: String,
    file: SerializedFileReader<File>,
    columns: Vec<Column>,
    names: Vec<String>,
    /// Rows of each row group.
    groups: Vec<usize>,
    /// Numbers in each cell: the length of the first list where cells are lists.
    widths: Vec<usize>,
    cells: Vec<(usize, Cell)>,
    /// One cursor per cell of a supported type.
    cursors: Vec<Option<Cursor>>,
    /// Rows in a batch, at most.
    batch_rows: usize,
    /// The next row group.
    next_group: usize,
    /// Rows left in the current row group.
    left: usize,
    /// Rows of earlier batches.
    row: u64,
}

impl ParquetReader {
    /// Opens the file and reads its schema.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).at(path)?;
        let opened = guarded(|| {
            let file = SerializedFileReader::new(file)?;
            let metadata = file.metadata();
            let columns = columns(metadata.file_metadata());
            let groups = metadata.row_groups().iter();
            let groups: Result<_, _> =
                groups.map(|group| usize::try_from(group.num_rows())).collect();
            Ok((columns, groups?, file))
        });
        let (columns, groups, file) = opened
            .map_err(|e| Error::invalid(format!("{name}: not a readable Parquet file: {e}")))?;
        let mut reader = Self {
            name,
            file,
            names: columns.iter().map(|column| column.name.clone()).collect(),
            widths: vec![1; columns.len()],
            columns,
            groups,
            cells: Vec::new(),
            cursors: Vec::new(),
            batch_rows: BATCH_ROWS,
            next_group: 0,
            left: 0,
            row: 0,
        };
        for column in 0..reader.columns.len() {
            reader.widths[column] = reader.first_length(column)?;
        }
        Ok(reader)
    }

    fn cursor(&self, leaf: usize) -> Cursor {
        Cursor::new(leaf, &self.file.metadata().file_metadata().schema_descr().column(leaf))
    }

    /// The length of the first list of a column of lists, 1 for other columns.
    fn first_length(&self, column: usize) -> Result<usize> {
        let Column { list: Some(list), leaf: Some(leaf), .. } = self.columns[column] else {
            return Ok(1);
        };
        let Some(group) = self.groups.iter().position(|&rows| rows > 0) else { return Ok(1) };
        let mut cursor = self.cursor(leaf);
        let read = cursor.open(&self.file, group).and_then(|()| cursor.read(1));
        read.map_err(|e| self.damaged(column, 0, &e))?;
        Ok(cursor.first_length(list).unwrap_or(1))
    }

    /// Decodes the next rows of all cells, across row groups; returns their number.
    fn decode(&mut self) -> Result<usize> {
        let mut rows = 0;
        while rows < self.batch_rows {
            if self.left == 0 {
                let group = self.next_group;
                let Some(&left) = self.groups.get(group) else { break };
                self.next_group += 1;
                if left == 0 {
                    continue;
                }
                self.each_cursor(rows, |file, cursor| cursor.open(file, group))?;
                self.left = left;
            }
            let step = self.left.min(self.batch_rows - rows);
            self.each_cursor(rows, |_, cursor| cursor.read(step))?;
            self.left -= step;
            rows += step;
            if self.left == 0 {
                self.each_cursor(rows, |_, cursor| cursor.finish())?;
            }
        }
        Ok(rows)
    }

    /// Runs a step with every cursor once this many rows of the batch are decoded.
    fn each_cursor(
        &mut self,
        rows: usize,
        mut step: impl FnMut(&dyn FileReader, &mut Cursor) -> Result<(), String>,
    ) -> Result<()> {
        for (cursor, &(column, _)) in self.cursors.iter_mut().zip(&self.cells) {
            let Some(cursor) = cursor else { continue };
            if let Err(e) = step(&self.file, cursor) {
                return Err(self.damaged(column, rows, &e));
            }
        }
        Ok(())
    }

    /// Appends the decoded values of a cell.
    fn take(&mut self, taken: usize, out: &mut Values) -> Result<()> {
        let (place, cell) = self.cells[taken];
        let column = &self.columns[place];
        let width = self.widths[place];
        let Some(cursor) = &mut self.cursors[taken] else { return Err(self.other(place, cell)) };
        if let Some(list) = column.list {
            // Ids, and whatever else is no number, are one in each row.
            if width != 1 && !matches!(out, Values::Number(_)) {
                return Err(self.other(place, cell));
            }
            if let Err(misfit) = cursor.unpack(list, width) {
                return Err(self.misfit(place, misfit));
            }
        }
        let cells = cursor.cells();
        let done = match out {
            Values::Integer(out) => integers(&column.kind, &cells, out),
            Values::Number(out) => numbers(&column.kind, &cells, cell, out),
            text => texts(&column.kind, &cells, text),
        };
        done.map_err(|fault| self.fault(place, cell, fault))
    }

    fn misfit(&self, column: usize, misfit: Misfit) -> Error {
        match misfit {
            Misfit::Null(row) => self.at(column, row, "is null"),
            Misfit::Length { row, length } => {
                let width = self.widths[column];
                self.at(column, row, &format!("has a list of {length}, the first has {width}"))
            }
        }
    }

    fn fault(&self, column: usize, cell: Cell, fault: Fault) -> Error {
        // Faults count items where cells are lists.
        let row = |place: usize| place / self.widths[column].max(1);
        match fault {
            Fault::Kind => self.other(column, cell),
            Fault::Null(place) => self.at(column, row(place), "is null"),
            Fault::Large(place) => {
                self.at(column, row(place), "exceeds 63 bits").hint("write such ids as strings")
            }
            Fault::Encoding(place) => self
                .at(column, row(place), "has text that is not UTF-8")
                .hint("write text as UTF-8"),
            Fault::Length(place) => self
                .at(column, row(place), "has a value of the wrong length")
                .hint("the file is damaged, or its writer at fault: write it again"),
        }
    }

    /// The error of a row of the batch.
    fn at(&self, column: usize, row: usize, what: &str) -> Error {
        let place = self.place(self.row + row as u64);
        Error::invalid(format!("{place}: column '{}' {what}", self.names[column]))
    }

    /// The error of a column of another type than is needed.
    fn other(&self, column: usize, cell: Cell) -> Error {
        let needed = match cell {
            Cell::Integer => "integers are",
            Cell::Number | Cell::Seconds => "numbers are",
            Cell::Text => "text is",
        };
        let Column { name, kind, list, .. } = &self.columns[column];
        let lists = if list.is_some() { "lists of " } else { "" };
        let file = &self.name;
        let error =
            Error::invalid(format!("{file}: column '{name}' holds {lists}{kind}, {needed} needed"));
        if kind.is_readable() {
            return error;
        }
        error.hint(
            "convert it to numbers, booleans, dates, timestamps or strings, or to lists of numbers",
        )
    }

    fn damaged(&self, column: usize, row: usize, e: &str) -> Error {
        let place = self.place(self.row + row as u64);
        Error::invalid(format!("{place}: column '{}': {e}", self.names[column]))
            .hint("the file is damaged, or compressed in a way that is not read: write it again, for example with zstd")
    }
}

impl TableReader for ParquetReader {
    fn name(&self) -> &str {
        &self.name
    }

    fn columns(&self) -> &[String] {
        &self.names
    }

    fn header(&self) -> Header {
        Header::Stated
    }

    fn looks_fraction(&self, column: usize) -> bool {
        let Column { kind, list, .. } = &self.columns[column];
        list.is_none() && kind.is_float()
    }

    fn looks_integer(&self, column: usize) -> bool {
        let Column { kind, list, .. } = &self.columns[column];
        list.is_none() && kind.is_integer()
    }

    fn looks_text(&self, column: usize) -> bool {
        let Column { kind, list, .. } = &self.columns[column];
        list.is_none() && *kind == Kind::Utf8
    }

    fn is_numeric(&self, column: usize) -> bool {
        let Column { kind, list, .. } = &self.columns[column];
        list.is_some() || kind.is_numeric()
    }

    fn width(&self, column: usize) -> usize {
        self.widths[column]
    }

    fn select(&mut self, cells: Vec<(usize, Cell)>) -> Result<()> {
        let cursor = |&(column, _): &(usize, Cell)| {
            let Column { kind, leaf, .. } = &self.columns[column];
            leaf.filter(|_| kind.is_readable()).map(|leaf| self.cursor(leaf))
        };
        self.cursors = cells.iter().map(cursor).collect();
        let numbers: usize = cells.iter().map(|&(column, _)| self.widths[column]).sum();
        // Wide rows come in smaller batches: a batch has at most 8 MiB of numbers.
        self.batch_rows = BATCH_ROWS.min(((1 << 20) / numbers.max(1)).max(16));
        self.cells = cells;
        self.next_group = 0;
        self.left = 0;
        self.row = 0;
        Ok(())
    }

    fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.start(&self.cells);
        self.cursors.iter_mut().flatten().for_each(Cursor::clear);
        let rows = self.decode()?;
        if rows > 0 {
            for (taken, out) in batch.columns.iter_mut().enumerate() {
                self.take(taken, out)?;
            }
        }
        batch.places.extend(self.row..self.row + rows as u64);
        self.row += rows as u64;
        Ok(rows > 0)
    }

    fn place(&self, place: u64) -> String {
        format!("{}: row {place}", self.name)
    }
}

#[cfg(test)]
mod tests;
