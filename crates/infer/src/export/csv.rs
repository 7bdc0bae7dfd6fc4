//! Tables as CSV: a header, then a line per row; texts are quoted where they must be.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use csv::{ErrorKind, Writer, WriterBuilder};
use gnarl_common::{Error, Result, ResultExt};

use super::format::Format;
use super::table::{Cells, Column, Kind};

/// Bytes between two writes to the file.
const BUFFER: usize = 1 << 18;

/// A CSV file being written.
struct CsvTable {
    path: PathBuf,
    writer: Writer<File>,
    widths: Vec<usize>,
    /// Text of one number.
    text: Vec<u8>,
}

/// Starts a table at `path`. Elements of lists are columns of their own: `embedding_0`,
/// `embedding_1`, …
///
/// # Errors
/// If the file cannot be made.
pub(super) fn create(path: &Path, columns: &[Column]) -> Result<Box<dyn Format>> {
    let file = File::create(path).at(path)?;
    let mut writer = WriterBuilder::new().buffer_capacity(BUFFER).from_writer(file);
    let mut widths = Vec::new();
    for Column { name, kind } in columns {
        match *kind {
            Kind::List(width) => {
                for i in 0..width {
                    writer.write_field(format!("{name}_{i}")).map_err(|e| failed(path, e))?;
                }
                widths.push(width);
            }
            _ => {
                writer.write_field(name).map_err(|e| failed(path, e))?;
                widths.push(1);
            }
        }
    }
    writer.write_record(None::<&[u8]>).map_err(|e| failed(path, e))?;
    Ok(Box::new(CsvTable { path: path.into(), writer, widths, text: Vec::new() }))
}

impl CsvTable {
    fn row(&mut self, row: usize, cells: &[Cells<'_>]) -> csv::Result<()> {
        for (cells, &width) in cells.iter().zip(&self.widths) {
            match cells {
                Cells::Texts(texts) => self.writer.write_field(texts[row])?,
                Cells::Integers(values) => {
                    self.text.clear();
                    write!(self.text, "{}", values[row])?;
                    self.writer.write_field(&self.text)?;
                }
                Cells::Floats(values) | Cells::Lists(values) => {
                    for value in &values[row * width..(row + 1) * width] {
                        self.text.clear();
                        // As short as possible for the same f32 to be read, with a point or an
                        // exponent, so that readers that guess types see no integers.
                        write!(self.text, "{value:?}")?;
                        self.writer.write_field(&self.text)?;
                    }
                }
            }
        }
        self.writer.write_record(None::<&[u8]>)
    }
}

impl Format for CsvTable {
    fn append(&mut self, cells: &[Cells<'_>], rows: usize) -> Result<()> {
        (0..rows).try_for_each(|row| self.row(row, cells)).map_err(|e| failed(&self.path, e))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.writer.flush().at(&self.path)
    }
}

fn failed(path: &Path, e: csv::Error) -> Error {
    match e.into_kind() {
        ErrorKind::Io(e) => Error::io(path, e),
        kind => Error::invalid(format!("{}: {kind:?}", path.display())),
    }
}
