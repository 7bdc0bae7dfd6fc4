//! Tables whose files appear at the end.

use std::path::{Path, PathBuf};

use gnarl_common::{Context, Result};

use super::format::Format;
use super::place::Place;
use super::table::{Cells, Column, Table, Written, internal};

/// A table in a temporary folder, of a known number of rows.
pub(super) struct Staged {
    out: PathBuf,
    columns: Vec<Column>,
    rows: u64,
    appended: u64,
    /// None after a failure. Files are closed before their folder is removed.
    open: Option<(Box<dyn Format>, Place)>,
}

impl Staged {
    pub fn new(
        out: &Path,
        columns: &[Column],
        rows: u64,
        format: Box<dyn Format>,
        place: Place,
    ) -> Self {
        let open = Some((format, place));
        Self { out: out.into(), columns: columns.to_vec(), rows, appended: 0, open }
    }

    /// The number of rows of `cells`, which must be those of all columns.
    fn count(&self, cells: &[Cells<'_>]) -> Result<usize> {
        let wrong = |what: String| Err(internal(&self.out, what));
        if cells.len() != self.columns.len() {
            return wrong(format!("cells of {} of {} columns", cells.len(), self.columns.len()));
        }
        let mut rows = None;
        for (column, cells) in self.columns.iter().zip(cells) {
            let Column { name, kind } = column;
            let Some(found) = cells.rows(*kind) else {
                return wrong(format!("cells of column {name} are not {kind:?}"));
            };
            let expected = *rows.get_or_insert(found);
            if found != expected {
                return wrong(format!("column {name} has {found} cells, others have {expected}"));
            }
        }
        let rows = rows.unwrap_or(0);
        let total = self.appended + rows as u64;
        if total > self.rows {
            return wrong(format!("{total} rows or more, expected {}", self.rows));
        }
        Ok(rows)
    }

    fn try_append(&mut self, cells: &[Cells<'_>]) -> Result<()> {
        let rows = self.count(cells)?;
        let Some((format, _)) = &mut self.open else {
            return Err(internal(&self.out, "rows after a failure"));
        };
        format.append(cells, rows).while_doing(|| format!("writing {}", self.out.display()))?;
        self.appended += rows as u64;
        Ok(())
    }
}

impl Table for Staged {
    fn append(&mut self, cells: &[Cells<'_>]) -> Result<()> {
        let appended = self.try_append(cells);
        if appended.is_err() {
            self.open = None;
        }
        appended
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        let Some((format, place)) = self.open else {
            return Err(internal(&self.out, "the end after a failure"));
        };
        if self.appended != self.rows {
            let what = format!("{} rows, expected {}", self.appended, self.rows);
            return Err(internal(&self.out, what));
        }
        let finished = format.finish().and_then(|()| place.commit());
        finished.while_doing(|| format!("writing {}", self.out.display()))
    }
}
