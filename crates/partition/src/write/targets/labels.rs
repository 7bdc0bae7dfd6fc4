//! Labels of target edges.

use std::path::Path;

use gnarl_common::error::{Error, Result};
use gnarl_graph::ColumnSpec;
use serde::{Deserialize, Serialize};

use crate::write::columns::NamedColumn;

/// The kind of the labels of target edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetLabels {
    /// One of so many classes.
    Classes(u64),
    /// So many labels, any of which hold.
    Multi(u64),
    /// A number.
    Values,
}

/// The label of an edge, by its row in the dataset.
#[derive(Clone, Copy)]
pub enum LabelOf<'a> {
    /// Class; -1 where there is none.
    Class(&'a dyn Fn(u64) -> i32),
    /// 0 or 1 per label, appended to the second argument.
    Marks(&'a dyn Fn(u64, &mut Vec<u8>)),
    /// Number; NaN where there is none.
    Value(&'a dyn Fn(u64) -> f32),
}

/// The column `label` of the target edges of a part and split.
pub(super) enum LabelColumn<'a> {
    Class(NamedColumn<i32>, &'a dyn Fn(u64) -> i32),
    Marks(Marks<'a>),
    Value(NamedColumn<f32>, &'a dyn Fn(u64) -> f32),
}

/// A column of several labels per edge.
pub(super) struct Marks<'a> {
    column: NamedColumn<u8>,
    of: &'a dyn Fn(u64, &mut Vec<u8>),
    tasks: usize,
    row: Vec<u8>,
}

impl<'a> LabelColumn<'a> {
    /// Starts the column.
    ///
    /// # Errors
    /// If `of` is of another kind, or the file cannot be made.
    pub fn create(dir: &Path, stem: &str, (kind, of): (TargetLabels, LabelOf<'a>)) -> Result<Self> {
        const NAME: &str = "label";
        match (kind, of) {
            (TargetLabels::Classes(_), LabelOf::Class(of)) => {
                Ok(Self::Class(NamedColumn::create(dir, stem, NAME, &[])?, of))
            }
            (TargetLabels::Multi(tasks), LabelOf::Marks(of)) => {
                let column = NamedColumn::create(dir, stem, NAME, &[tasks])?;
                Ok(Self::Marks(Marks { column, of, tasks: tasks as usize, row: Vec::new() }))
            }
            (TargetLabels::Values, LabelOf::Value(of)) => {
                Ok(Self::Value(NamedColumn::create(dir, stem, NAME, &[])?, of))
            }
            (kind, _) => Err(Error::invalid(format!("invalid labels of edges: expected {kind:?}"))),
        }
    }

    /// Appends the label of the edge at `row` of the dataset.
    ///
    /// # Errors
    /// If it has another number of labels, or the disk is full.
    pub fn push(&mut self, row: u64) -> Result<()> {
        match self {
            Self::Class(column, of) => column.push(&[of(row)]),
            Self::Value(column, of) => column.push(&[of(row)]),
            Self::Marks(marks) => marks.push(row),
        }
    }

    /// Completes the column.
    pub fn finish(self) -> Result<ColumnSpec> {
        match self {
            Self::Class(column, _) => column.finish(),
            Self::Marks(marks) => marks.column.finish(),
            Self::Value(column, _) => column.finish(),
        }
    }
}

impl Marks<'_> {
    fn push(&mut self, row: u64) -> Result<()> {
        self.row.clear();
        (self.of)(row, &mut self.row);
        if self.row.len() == self.tasks {
            return self.column.push(&self.row);
        }
        let (tasks, found) = (self.tasks, self.row.len());
        Err(Error::invalid(format!(
            "invalid labels of edge {row}: expected {tasks}, found {found}"
        )))
    }
}
