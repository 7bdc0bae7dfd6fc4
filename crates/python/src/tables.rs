//! Tables of other libraries, by the Arrow stream interface, as Parquet files that an import reads.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::types::Float64Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, GenericListArray, Int64Array, OffsetSizeTrait, RecordBatch,
    RecordBatchReader,
};
use arrow_cast::cast;
use arrow_pyarrow::PyArrowType;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use gnarl_common::staging::{Claim, Staging};
use gnarl_common::{Error, Kind, Result, ResultExt};
use gnarl_graph::MANIFEST;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use pyo3::prelude::*;

use crate::errors::Raise;

/// Rows that are written at a time, between two looks at signals, and bytes of them.
const PIECE: usize = 1 << 18;
const BYTES: usize = 32 << 20;
/// Most categories of a column that are features unasked.
const CATEGORIES: usize = 256;
/// The kind of columns that an import has no use for, which are not written.
const OTHER: &str = "other";
/// The column of row numbers, of tables without ids.
const ROW: &str = "__row__";

/// Tables beside the dataset that is made of them, in a folder that goes when this does.
#[pyclass(module = "gnarl._gnarl")]
pub struct Tables {
    folder: Option<Staging>,
}

/// The columns of a table by their kinds.
type Facts = Vec<(String, &'static str)>;

#[pymethods]
impl Tables {
    /// Starts a folder of tables beside `out`, where a dataset is to be made; one that is there must be to be replaced.
    #[new]
    fn create(py: Python<'_>, out: PathBuf, force: bool) -> PyResult<Self> {
        // The import claims it again, in a process of its own.
        drop(Claim::new(&out, MANIFEST, force).raise(py)?);
        // Without a slash at the end.
        let mut place = out.components().collect::<PathBuf>().into_os_string();
        place.push(".tables");
        let folder = Staging::create(Path::new(&place), MANIFEST).raise(py)?;
        Ok(Self { folder: Some(folder) })
    }

    /// The folder.
    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<PathBuf> {
        self.folder().map(|folder| folder.path().into()).raise(py)
    }

    /// Writes a table by its name. Each of `links` names a column and another table, which has the column `id` and this one, of
    /// rows where it is not null. Without an `id` that is the number of the row, which is written, too.
    fn write(
        &self,
        py: Python<'_>,
        name: &str,
        stream: PyArrowType<RecordBatchStreamReader>,
        id: Option<String>,
        links: Vec<(String, String)>,
    ) -> PyResult<Facts> {
        let folder = self.folder().raise(py)?.path();
        let written = py.detach(|| {
            let mut table = Table::create(folder, name, &stream.0.schema(), id, &links)?;
            for batch in stream.0 {
                table.push(&batch.map_err(|e| failed(name, &e))?)?;
            }
            table.finish()
        });
        written.raise(py)
    }

    /// Removes the folder.
    fn close(&mut self) {
        self.folder = None;
    }
}

impl Tables {
    fn folder(&self) -> Result<&Staging> {
        self.folder.as_ref().ok_or_else(|| Error::usage("the tables are closed"))
    }
}

/// A table that is being written, and those of its links.
struct Table {
    name: String,
    main: Output,
    links: Vec<Link>,
    /// Columns of types that an import reads.
    kept: Vec<usize>,
    /// The columns of keys.
    keys: Vec<usize>,
    schema: SchemaRef,
    facts: Facts,
    /// Facts about the values of each column so far.
    seen: Vec<Seen>,
    id: Option<String>,
    rows: u64,
}

/// Facts that only values tell.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    values: usize,
    categories: usize,
    /// Items of the first list.
    length: Option<usize>,
    /// True if lists differ in length, or one or an item is null.
    is_ragged: bool,
}

impl Seen {
    fn look(&mut self, column: &ArrayRef) {
        self.values += column.len() - column.logical_null_count();
        if let Some(dictionary) = column.as_any_dictionary_opt() {
            self.categories = self.categories.max(dictionary.values().len());
        }
        match column.data_type() {
            DataType::List(_) => self.look_at_list(column.as_list::<i32>()),
            DataType::LargeList(_) => self.look_at_list(column.as_list::<i64>()),
            DataType::FixedSizeList(..) => {
                self.is_ragged |= column.as_fixed_size_list().values().null_count() > 0;
            }
            _ => {}
        }
        self.is_ragged |= column.null_count() > 0;
    }

    fn look_at_list<O: OffsetSizeTrait>(&mut self, column: &GenericListArray<O>) {
        for length in column.offsets().lengths() {
            self.is_ragged |= *self.length.get_or_insert(length) != length;
        }
        self.is_ragged |= column.values().null_count() > 0;
    }
}

struct Link {
    column: String,
    output: Output,
}

struct Output {
    path: PathBuf,
    writer: ArrowWriter<BufWriter<File>>,
}

impl Table {
    fn create(
        folder: &Path,
        name: &str,
        given: &Schema,
        id: Option<String>,
        links: &[(String, String)],
    ) -> Result<Self> {
        let fields = given.fields();
        let kept: Vec<usize> =
            (0..fields.len()).filter(|&at| kind(fields[at].data_type()) != OTHER).collect();
        let find = |column: &str| {
            kept.iter().position(|&at| fields[at].name() == column).ok_or_else(|| {
                let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
                Error::usage(format!("{name}: no column '{column}'"))
                    .hint(format!("it has: {}", names.join(", ")))
            })
        };
        let linked = links.iter().map(|(column, _)| column);
        let keys: Vec<usize> =
            linked.chain(&id).map(|column| find(column)).collect::<Result<_>>()?;
        let numbered = id.is_none() && !links.is_empty();
        let mut columns: Vec<Field> = kept.iter().map(|&at| fields[at].as_ref().clone()).collect();
        for &key in &keys {
            if columns[key].data_type().is_floating() {
                columns[key] = Field::new(columns[key].name(), DataType::Int64, true);
            }
        }
        let facts =
            fields.iter().map(|field| (field.name().clone(), kind(field.data_type()))).collect();
        if numbered {
            columns.push(Field::new(ROW, DataType::Int64, false));
        }
        let schema = Arc::new(Schema::new(columns));
        let id = numbered.then(|| ROW.into()).or(id);
        let link = |(column, file): &(String, String)| {
            let schema = of_link(&schema, id.as_deref().unwrap_or(ROW), column)?;
            Ok(Link { column: column.clone(), output: Output::create(folder, file, schema)? })
        };
        let links: Vec<Link> = links.iter().map(link).collect::<Result<_>>()?;
        let main = Output::create(folder, name, Arc::clone(&schema))?;
        let seen = vec![Seen::default(); fields.len()];
        Ok(Self { name: name.into(), main, links, kept, keys, schema, facts, seen, id, rows: 0 })
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut first = 0;
        // Of its own rows: batches may be slices of buffers that are much larger.
        let own = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or_default();
        let bytes: usize = batch.columns().iter().map(own).sum();
        let row = (bytes / batch.num_rows().max(1)).max(1);
        let most = PIECE.min((BYTES / row).max(1));
        while first < batch.num_rows() {
            let rows = most.min(batch.num_rows() - first);
            self.piece(&batch.slice(first, rows))?;
            first += rows;
            Python::attach(|py| py.check_signals())
                .map_err(|_| Error::new(Kind::Interrupted, "interrupted while tables were read"))?;
        }
        Ok(())
    }

    fn piece(&mut self, batch: &RecordBatch) -> Result<()> {
        for (seen, column) in self.seen.iter_mut().zip(batch.columns()) {
            seen.look(column);
        }
        let mut columns: Vec<ArrayRef> =
            self.kept.iter().map(|&at| Arc::clone(batch.column(at))).collect();
        for &key in &self.keys {
            columns[key] = whole(&columns[key]).map_err(|(row, found)| {
                let column = self.schema.field(key).name();
                let row = self.rows + row as u64;
                Error::invalid(format!("{}: row {row}: column '{column}' has {found}", self.name))
                    .hint("keys are integers or strings")
            })?;
        }
        if columns.len() < self.schema.fields().len() {
            let first = self.rows as i64;
            columns.push(Arc::new(Int64Array::from_iter_values(
                first..first + batch.num_rows() as i64,
            )));
        }
        self.rows += batch.num_rows() as u64;
        let failed = |e: ArrowError| failed(&self.name, &e);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(failed)?;
        self.main.write(&batch)?;
        for Link { column, output } in &mut self.links {
            let id = self.id.as_deref().unwrap_or(ROW);
            let of_column =
                |name: &str| self.schema.index_of(name).map(|at| batch.column(at).clone());
            let both = vec![of_column(id).map_err(failed)?, of_column(column).map_err(failed)?];
            let schema = of_link(&self.schema, id, column)?;
            let linked = RecordBatch::try_new(schema, both).map_err(failed)?;
            let there = match linked.column(1).logical_nulls() {
                None => linked,
                Some(nulls) => {
                    let there = BooleanArray::new(nulls.into_inner(), None);
                    filter_record_batch(&linked, &there).map_err(failed)?
                }
            };
            output.write(&there)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Facts> {
        self.main.finish()?;
        self.links.into_iter().try_for_each(|link| link.output.finish())?;
        let facts = self.facts.into_iter().zip(&self.seen).map(|((name, kind), seen)| {
            let told = match kind {
                "number" | "date" | "boolean" if seen.values == 0 => "nothing",
                "category" if seen.categories > CATEGORIES => "text",
                "list" if seen.is_ragged => "lists",
                kind => kind,
            };
            (name, told)
        });
        Ok(facts.collect())
    }
}

impl Output {
    fn create(folder: &Path, name: &str, schema: SchemaRef) -> Result<Self> {
        let path = folder.join(name);
        let file = BufWriter::new(File::create(&path).at(&path)?);
        // It is read once, from a disk that also takes the dataset.
        let properties = WriterProperties::builder()
            .set_compression(Compression::LZ4_RAW)
            .set_max_row_group_row_count(Some(PIECE * 2))
            .set_max_row_group_bytes(Some(BYTES * 2));
        let writer = ArrowWriter::try_new(file, schema, Some(properties.build()));
        let writer = writer.map_err(|e| unwritten(&path, &e))?;
        Ok(Self { path, writer })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(|e| unwritten(&self.path, &e))
    }

    fn finish(self) -> Result<()> {
        let Self { path, writer } = self;
        writer.close().map(drop).map_err(|e| unwritten(&path, &e))
    }
}

fn of_link(schema: &Schema, id: &str, column: &str) -> Result<SchemaRef> {
    let field = |name: &str, end: &str| -> Result<Field> {
        let found = schema.field_with_name(name).map_err(|e| Error::usage(e.to_string()))?;
        Ok(found.clone().with_name(end))
    };
    // Columns of other names have roles that an import gives them unasked.
    Ok(Arc::new(Schema::new(vec![field(id, "src")?, field(column, "dst")?])))
}

/// Integers of keys that are floats, as tables have them whose integers cannot be missing.
fn whole(keys: &ArrayRef) -> Result<ArrayRef, (usize, String)> {
    if !keys.data_type().is_floating() {
        return Ok(Arc::clone(keys));
    }
    let wide = cast(keys, &DataType::Float64).map_err(|e| (0, e.to_string()))?;
    let integer = |(row, value): (usize, Option<f64>)| match value {
        Some(value) if value.is_nan() => Ok(None),
        Some(value) if value.fract() == 0.0 && value.abs() < 2f64.powi(53) => {
            Ok(Some(value as i64))
        }
        Some(value) => Err((row, format!("the key {value}"))),
        None => Ok(None),
    };
    let whole = wide.as_primitive::<Float64Type>().iter().enumerate().map(integer);
    Ok(Arc::new(whole.collect::<Result<Int64Array, _>>()?))
}

/// The kind of a column, by which features are chosen.
fn kind(of: &DataType) -> &'static str {
    match of {
        DataType::Boolean => "boolean",
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => "date",
        DataType::Dictionary(_, values) if kind(values) != OTHER => "category",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)
            if item.data_type().is_numeric() =>
        {
            "list"
        }
        numeric if numeric.is_numeric() => "number",
        DataType::Null => "nothing",
        _ => OTHER,
    }
}

fn failed(name: &str, error: &ArrowError) -> Error {
    // A reader that is written in Python raises within the stream.
    if error.to_string().contains("KeyboardInterrupt") {
        return Error::new(Kind::Interrupted, "interrupted while tables were read");
    }
    Error::invalid(format!("{name}: {error}"))
}

fn unwritten(path: &Path, error: &ParquetError) -> Error {
    Error::new(Kind::Io, format!("{}: {error}", path.display()))
}
