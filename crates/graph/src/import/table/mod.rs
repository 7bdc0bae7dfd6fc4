//! Tables of nodes and edges: CSV, TSV and Parquet behind one trait.

mod carried;
mod csv;
mod edges;
mod facts;
mod feature;
mod fields;
mod fit;
mod header;
mod heterogeneous;
mod labels;
mod nodes;
mod numbers;
mod options;
mod parquet;
mod reader;
mod roles;
mod schema;
mod string_ids;
mod taken;
mod transform;

use std::path::Path;

use gnarl_common::{Error, Result};

pub(super) use csv::CsvReader;
pub use facts::{TableColumn, TableFacts};
pub use feature::{Feature, Impute, Transform};
pub(super) use header::{CsvFormat, Expected, called};
pub use heterogeneous::tables;
pub use options::{EdgeTable, IdKind, NodeTable, TableOptions};
pub(super) use reader::{Batch, Cell, TableReader, Values};
pub(super) use string_ids::{string_pairs, text_id};

use super::input::{FileKind, Input};

/// Opens the table at `path` with the `expected` columns: Parquet by its first bytes, else
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
