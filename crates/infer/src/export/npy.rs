//! Tables as npy: an array of the values, and beside it the ids, if there are any.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use gnarl_common::npy::NpyWriter;
use gnarl_common::{Error, Result, ResultExt};

use super::format::Format;
use super::place::Place;
use super::table::{Cells, Column, Kind};

/// One file of a table.
enum Array {
    Integers(NpyWriter<i64>),
    Floats(NpyWriter<f32>),
    /// One text per line.
    Lines {
        path: PathBuf,
        file: BufWriter<File>,
    },
}

/// The files of a table in the order of its columns.
struct NpyTable(Vec<Array>);

/// The file of ids beside `out`, if the table has ids: `<stem>.ids.npy` or `<stem>.ids.txt`.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] if the columns are other than ids and one column of numbers.
pub(super) fn files_beside(out: &Path, columns: &[Column]) -> Result<Vec<PathBuf>> {
    let extension = match columns {
        [values] if values.kind != Kind::Text => None,
        [ids, values] if values.kind != Kind::Text => match ids.kind {
            Kind::Integer => Some(".ids.npy"),
            Kind::Text => Some(".ids.txt"),
            _ => return Err(unsuitable(out, columns)),
        },
        _ => return Err(unsuitable(out, columns)),
    };
    Ok(extension
        .map(|extension| {
            let mut name = out.file_stem().unwrap_or_default().to_owned();
            name.push(extension);
            out.with_file_name(name)
        })
        .into_iter()
        .collect())
}

fn unsuitable(out: &Path, columns: &[Column]) -> Error {
    let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    Error::usage(format!(
        "{}: invalid columns '{}': expected ids and one column of numbers",
        out.display(),
        names.join(", ")
    ))
    .hint("write a .parquet file, which can have any columns")
}

/// Starts the files of a table, for whose columns [`files_beside`] found no fault.
///
/// # Errors
/// If a file cannot be made.
pub(super) fn create(out: &Path, columns: &[Column], place: &Place) -> Result<Box<dyn Format>> {
    let mut files = files_beside(out, columns)?;
    files.push(out.into());
    let arrays = columns.iter().zip(&files).map(|(column, file)| {
        let path = place.temporary(file);
        Ok(match column.kind {
            Kind::Integer => Array::Integers(NpyWriter::create(path, &[])?),
            Kind::Float => Array::Floats(NpyWriter::create(path, &[])?),
            Kind::List(width) => Array::Floats(NpyWriter::create(path, &[width as u64])?),
            Kind::Text => {
                let file = BufWriter::new(File::create(&path).at(&path)?);
                Array::Lines { path, file }
            }
        })
    });
    Ok(Box::new(NpyTable(arrays.collect::<Result<_>>()?)))
}

impl Format for NpyTable {
    fn append(&mut self, cells: &[Cells<'_>], _: usize) -> Result<()> {
        for (array, cells) in self.0.iter_mut().zip(cells) {
            match (array, cells) {
                (Array::Integers(writer), Cells::Integers(values)) => writer.push(values)?,
                (Array::Floats(writer), Cells::Floats(values) | Cells::Lists(values)) => {
                    writer.push(values)?
                }
                (Array::Lines { path, file }, Cells::Texts(texts)) => {
                    texts.iter().try_for_each(|text| line(path, file, text))?
                }
                _ => unreachable!("cells were compared with columns"),
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        for array in self.0 {
            match array {
                Array::Integers(writer) => _ = writer.finish()?,
                Array::Floats(writer) => _ = writer.finish()?,
                Array::Lines { path, mut file } => file.flush().at(&path)?,
            }
        }
        Ok(())
    }
}

fn line(path: &Path, file: &mut BufWriter<File>, text: &str) -> Result<()> {
    // Line n would no longer be that of row n.
    if text.contains(['\n', '\r']) {
        return Err(Error::usage(format!("id {text:?} has a line break"))
            .hint("write a .parquet or .csv file instead"));
    }
    writeln!(file, "{text}").at(path)
}
