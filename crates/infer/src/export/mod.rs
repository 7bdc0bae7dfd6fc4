//! Tables of predictions in files: Parquet, npy, CSV or Zarr, by the extension of the file.
//!
//! **In:** columns, and their cells in pieces of any number of rows. **Out:** whole files under
//! their names, or none: they are written in a temporary folder beside their place and moved from
//! there at the end.
//!
//! | extension | integers | texts | floats | lists of floats |
//! |---|---|---|---|---|
//! | `.parquet` | INT64 | STRING | FLOAT | LIST of FLOAT |
//! | `.npy` | `<i8` `[N]` | ids only, in a text file | `<f4` `[N]` | `<f4` `[N, width]` |
//! | `.csv` | a column | a column | a column | a column per element, `embedding_0` … |
//! | `.zarr` | `int64` `[N]` | `string` `[N]` | `float32` `[N]` | `float32` `[N, width]` |
//!
//! A `.zarr` is a folder: a group of Zarr version 3 with an array per column, in chunks of 32,768 rows, or
//! of fewer where they would have more than 16 MiB. It needs the cargo feature `zarr`.
//!
//! No value is missing: cells have no nulls. Memory is bounded for any number of rows.
//!
//! ```
//! use gnarl_infer::export::{self, Cells, Column, Kind};
//!
//! # fn main() -> gnarl_common::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! let columns = [Column::new("id", Kind::Text), Column::new("embedding", Kind::List(2))];
//! let mut table = export::create(&dir.path().join("nodes.parquet"), &columns, 3, false)?;
//! table.append(&[Cells::Texts(&["a", "b"]), Cells::Lists(&[0.5, 1.0, 2.0, 0.0])])?;
//! table.append(&[Cells::Texts(&["c"]), Cells::Lists(&[0.0, 4.0])])?;
//! let written = table.finish()?;
//! assert_eq!(written.files, [dir.path().join("nodes.parquet")]);
//! # Ok(())
//! # }
//! ```

mod csv;
mod format;
mod npy;
mod parquet;
mod place;
mod staged;
mod table;
#[cfg(test)]
mod tests;
#[cfg(feature = "zarr")]
mod zarr;

use std::path::{Path, PathBuf};

use gnarl_common::did_you_mean::unknown;
use gnarl_common::{Context, Error, Result};

use format::Format;
use place::{Files, Place};
use staged::Staged;
pub use table::{Cells, Column, Kind, Table, Written};

/// The known extensions of tables.
pub const EXTENSIONS: [&str; 4] = ["parquet", "npy", "csv", "zarr"];

/// A claimed place for a table, before the widths of its lists are known.
pub struct Claim {
    out: PathBuf,
    extension: String,
    place: Place,
}

/// Claims the place of a table at `out`, in the format of its extension. An existing file is replaced
/// in the end if `force` is set. The folder of `out` is created if necessary. Of `columns`, the widths
/// of lists play no part.
///
/// In npy, the last column is the file, and a column of ids before it becomes a second file:
/// `<stem>.ids.npy` of integers, or `<stem>.ids.txt` of texts, one per line.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] if the extension is unknown, the format cannot have the columns, a
/// file is in the way, or another process is writing there. A folder is replaced only if it is a Zarr
/// group.
pub fn claim(out: &Path, columns: &[Column], force: bool) -> Result<Claim> {
    if columns.is_empty() {
        return Err(table::internal(out, "a table of no columns"));
    }
    let extension = out.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let others = match extension.as_str() {
        "parquet" | "csv" => Vec::new(),
        "npy" => npy::files_beside(out, columns)?,
        "zarr" => {
            let place = folder(out, force)?;
            return Ok(Claim { out: out.into(), extension, place });
        }
        _ => return Err(unknown_extension(out, &extension)),
    };
    let place = Place::Files(Files::claim(out, others, force)?);
    Ok(Claim { out: out.into(), extension, place })
}

impl Claim {
    /// The files or the folder that the table will have: its own first.
    pub fn files(&self) -> &[PathBuf] {
        self.place.files()
    }

    /// Starts the table, of `rows` rows. `columns` are those of the claim, with the widths of lists.
    ///
    /// # Errors
    /// If a file cannot be made.
    pub fn create(self, columns: &[Column], rows: u64) -> Result<Box<dyn Table>> {
        let Self { out, extension, place } = self;
        if columns.iter().any(|column| column.kind == Kind::List(0)) {
            return Err(table::internal(&out, "lists of no elements"));
        }
        let format: Result<Box<dyn Format>> = match extension.as_str() {
            "parquet" => parquet::create(&place.temporary(&out), columns),
            "csv" => csv::create(&place.temporary(&out), columns),
            #[cfg(feature = "zarr")]
            "zarr" => zarr::create(&place.temporary(&out), columns, rows),
            _ => npy::create(&out, columns, &place),
        };
        let format = format.while_doing(|| format!("writing {}", out.display()))?;
        Ok(Box::new(Staged::new(&out, columns, rows, format, place)))
    }
}

/// Claims the place of a table and starts it: [`claim`], then [`Claim::create`].
///
/// # Errors
/// Those of both.
pub fn create(out: &Path, columns: &[Column], rows: u64, force: bool) -> Result<Box<dyn Table>> {
    claim(out, columns, force)?.create(columns, rows)
}

/// Claims the folder of a Zarr group.
#[cfg(feature = "zarr")]
fn folder(out: &Path, force: bool) -> Result<Place> {
    Ok(Place::Folder(place::Folder::claim(out, force)?))
}

#[cfg(not(feature = "zarr"))]
fn folder(out: &Path, _: bool) -> Result<Place> {
    Err(Error::usage(format!("{}: this gnarl was built without Zarr", out.display()))
        .hint("build it with the cargo feature zarr, or write a .parquet file"))
}

fn unknown_extension(out: &Path, extension: &str) -> Error {
    if extension.is_empty() {
        let known = EXTENSIONS.join(", .");
        return Error::usage(format!("{}: the name has no extension", out.display()))
            .hint(format!("the extension is the format: .{known}"));
    }
    unknown("extension", extension, &EXTENSIONS).context(out.display().to_string())
}
