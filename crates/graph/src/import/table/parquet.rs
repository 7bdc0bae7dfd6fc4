//! Parquet files, read by record batches of the selected columns.

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use arrow_select::concat::concat;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::header::Header;
use super::parquet_values::{self, NoInteger};
use super::reader::{BATCH_ROWS, Batch, Cell, TableReader, Values};
use crate::error::{Error, Result, ResultExt};

/// A Parquet file with flat columns.
pub(super) struct ParquetReader {
    name: String,
    builder: Option<ParquetRecordBatchReaderBuilder<File>>,
    batches: Option<ParquetRecordBatchReader>,
    columns: Vec<String>,
    types: Vec<DataType>,
    /// Numbers in each cell: the length of the first list where cells are lists.
    widths: Vec<usize>,
    cells: Vec<(usize, Cell)>,
    row: u64,
}

impl ParquetReader {
    /// Opens the file and reads its schema.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).at(path)?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file)
            .map_err(|e| Error::invalid(format!("{name}: not a readable Parquet file: {e}")))?;
        let fields = builder.schema().fields();
        let columns = fields.iter().map(|f| f.name().clone()).collect();
        let types: Vec<DataType> = fields.iter().map(|f| f.data_type().clone()).collect();
        let widths = first_lengths(path, &types)?;
        let (builder, batches, cells) = (Some(builder), None, Vec::new());
        Ok(Self { name, builder, batches, columns, types, widths, cells, row: 0 })
    }

    fn copy(&self, record: &RecordBatch, taker: usize, out: &mut Values) -> Result<()> {
        let (place, cell) = self.cells[taker];
        let column = &self.columns[place];
        let array = record.column_by_name(column).expect("the column was selected");
        let array = match items(array) {
            None => array.clone(),
            Some(lists) => self.flatten(column, self.widths[place], lists)?,
        };
        let bad = |e| Error::invalid(format!("{}: column '{column}': {e}", self.name));
        let array = parquet_values::plain(&array).map_err(bad)?;
        let needed = match out {
            Values::Integer(out) => parquet_values::integers(&array, out)
                .map_err(|fault| self.no_integer(column, fault))?
                .then_some(())
                .ok_or("integers are"),
            Values::Number(out) => {
                parquet_values::numbers(&array, cell, out).then_some(()).ok_or("numbers are")
            }
            text => parquet_values::texts(&array, text).then_some(()).ok_or("text is"),
        };
        needed.map_err(|needed| {
            let held = array.data_type();
            Error::invalid(format!(
                "{}: column '{column}' holds {held}, {needed} needed",
                self.name
            ))
        })
    }

    /// The items of lists that all have `width` of them.
    fn flatten(
        &self,
        column: &str,
        width: usize,
        lists: Vec<Option<ArrayRef>>,
    ) -> Result<ArrayRef> {
        let mut rows = Vec::with_capacity(lists.len());
        for (i, list) in lists.into_iter().enumerate() {
            let list = list.ok_or_else(|| self.null(column, i))?;
            if list.len() != width {
                let place = self.place(self.row + i as u64);
                return Err(Error::invalid(format!(
                    "{place}: column '{column}' has a list of {}, the first has {width}",
                    list.len()
                )));
            }
            rows.push(list);
        }
        let rows: Vec<&dyn Array> = rows.iter().map(AsRef::as_ref).collect();
        concat(&rows).map_err(|e| Error::invalid(format!("{}: {column}: {e}", self.name)))
    }

    fn no_integer(&self, column: &str, fault: NoInteger) -> Error {
        match fault {
            NoInteger::Null(row) => self.null(column, row),
            NoInteger::Large(row) => {
                let place = self.place(self.row + row as u64);
                Error::invalid(format!("{place}: column '{column}' exceeds 63 bits"))
                    .hint("write such ids as strings")
            }
        }
    }

    fn null(&self, column: &str, row: usize) -> Error {
        let place = self.place(self.row + row as u64);
        Error::invalid(format!("{place}: column '{column}' is null"))
    }
}

/// The lists of an array of lists.
fn items(array: &ArrayRef) -> Option<Vec<Option<ArrayRef>>> {
    match array.data_type() {
        DataType::List(_) => Some(array.as_list::<i32>().iter().collect()),
        DataType::LargeList(_) => Some(array.as_list::<i64>().iter().collect()),
        DataType::FixedSizeList(..) => Some(array.as_fixed_size_list().iter().collect()),
        _ => None,
    }
}

/// The length of the first list of every column of lists, 1 for other columns.
fn first_lengths(path: &Path, types: &[DataType]) -> Result<Vec<usize>> {
    let mut widths = vec![1; types.len()];
    let bad = |e: &dyn std::fmt::Display| Error::invalid(format!("{}: {e}", path.display()));
    for (column, kind) in types.iter().enumerate() {
        if !matches!(kind, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
        {
            continue;
        }
        let file = File::open(path).at(path)?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| bad(&e))?;
        let mask = ProjectionMask::roots(builder.parquet_schema(), [column]);
        let mut rows =
            builder.with_projection(mask).with_batch_size(1).build().map_err(|e| bad(&e))?;
        if let Some(row) = rows.next() {
            let first = items(row.map_err(|e| bad(&e))?.column(0));
            let list = first.and_then(|lists| lists.into_iter().next().flatten());
            widths[column] = list.map_or(1, |list| list.len());
        }
    }
    Ok(widths)
}

impl TableReader for ParquetReader {
    fn name(&self) -> &str {
        &self.name
    }

    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn header(&self) -> Header {
        Header::Stated
    }

    fn looks_fraction(&self, column: usize) -> bool {
        parquet_values::value_type(&self.types[column]).is_floating()
    }

    fn looks_integer(&self, column: usize) -> bool {
        parquet_values::value_type(&self.types[column]).is_integer()
    }

    fn looks_text(&self, column: usize) -> bool {
        parquet_values::is_text(&self.types[column])
    }

    fn is_numeric(&self, column: usize) -> bool {
        parquet_values::is_numeric(&self.types[column])
    }

    fn width(&self, column: usize) -> usize {
        self.widths[column]
    }

    fn select(&mut self, cells: Vec<(usize, Cell)>) -> Result<()> {
        let Some(builder) = self.builder.take() else {
            return Err(Error::invalid(format!("{}: selected twice", self.name)));
        };
        let roots = cells.iter().map(|c| c.0);
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
        let batches = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
        let bad = |e| Error::invalid(format!("{}: {e}", self.name));
        self.batches = Some(batches.map_err(bad)?);
        self.cells = cells;
        Ok(())
    }

    fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.start(&self.cells);
        let Some(record) = self.batches.as_mut().and_then(Iterator::next) else {
            return Ok(false);
        };
        let bad = |e| Error::invalid(format!("{}: row {}: {e}", self.name, self.row));
        let record = record.map_err(bad)?;
        for (taker, out) in batch.columns.iter_mut().enumerate() {
            self.copy(&record, taker, out)?;
        }
        let rows = record.num_rows() as u64;
        batch.places.extend(self.row..self.row + rows);
        self.row += rows;
        Ok(rows > 0)
    }

    fn place(&self, place: u64) -> String {
        format!("{}: row {place}", self.name)
    }
}
