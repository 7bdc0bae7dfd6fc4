//! Columns of target edges, opened and checked.

use std::path::Path;

use gnarl_common::error::{Error, Result};
use gnarl_common::{Buf, Element};
use gnarl_graph::{Column, ColumnSpec, Labels};

use super::{SPLITS, TargetLabels};

/// The files of one part and split.
pub(super) struct Files<'a> {
    pub dir: &'a Path,
    pub split: usize,
    pub specs: &'a [ColumnSpec],
    /// Number of edges.
    pub rows: u64,
}

impl Files<'_> {
    fn column(&self, name: &str) -> Result<Column> {
        let at = |file: &str| self.dir.join(file).display().to_string();
        let Some(spec) = self.specs.iter().find(|spec| spec.name == name) else {
            let file = at(&format!("{}.{name}.npy", SPLITS[self.split]));
            return Err(Error::invalid(format!(
                "the manifest of the partition does not name {file}"
            )));
        };
        let column = Column::open(self.dir, spec)?;
        if column.rows() as u64 == self.rows {
            return Ok(column);
        }
        let (file, found, rows) = (at(&spec.file), column.rows(), self.rows);
        Err(Error::invalid(format!("{file}: expected {rows} rows, one per edge; found {found}")))
    }

    pub fn values<T: Element>(&self, name: &str) -> Result<Buf<T>> {
        let column = self.column(name)?;
        self.check_width(&column, 1)?;
        column.values()
    }

    /// Checks by its ends that the column of places ascends, below `total`.
    pub fn check_places(&self, places: &[u32], total: u64) -> Result<()> {
        let (Some(&first), Some(&last)) = (places.first(), places.last()) else { return Ok(()) };
        let ascending = u64::from(last) >= u64::from(first) + (places.len() as u64 - 1);
        if ascending && u64::from(last) < total {
            return Ok(());
        }
        let file = self.dir.join(format!("{}.place.npy", SPLITS[self.split]));
        let file = file.display();
        Err(Error::invalid(format!("{file}: expected ascending numbers below {total}")))
    }

    pub fn labels(&self, kind: TargetLabels) -> Result<Labels> {
        const NAME: &str = "label";
        match kind {
            TargetLabels::Classes(classes) => {
                let count = classes as usize;
                Ok(Labels::Single { classes: self.values(NAME)?, count })
            }
            TargetLabels::Values => Ok(Labels::Values { values: self.values(NAME)? }),
            TargetLabels::Multi(tasks) => {
                let column = self.column(NAME)?;
                self.check_width(&column, tasks)?;
                Ok(Labels::Multi { values: column.values()?, tasks: tasks as usize })
            }
        }
    }

    pub fn features(&self, width: u64) -> Result<Option<Column>> {
        if width == 0 {
            return Ok(None);
        }
        let column = self.column("features")?;
        self.check_width(&column, width)?;
        Ok(Some(column))
    }

    fn check_width(&self, column: &Column, expected: u64) -> Result<()> {
        let found = column.width();
        if found as u64 == expected {
            return Ok(());
        }
        let file = self.dir.join(&column.spec().file);
        let file = file.display();
        Err(Error::invalid(format!("{file}: expected rows of {expected} values, found {found}")))
    }
}
