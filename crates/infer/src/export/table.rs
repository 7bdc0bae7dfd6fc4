//! Tables: columns, and cells that are appended to them.

use std::path::{Path, PathBuf};

use gnarl_common::{Error, Result};

/// The type of the cells of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit integers.
    Integer,
    /// UTF-8 texts.
    Text,
    /// Numbers of type f32.
    Float,
    /// Lists of that many numbers of type f32, at least one.
    List(usize),
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, which no other column of the table has.
    pub name: String,
    /// The type of its cells.
    pub kind: Kind,
}

impl Column {
    /// A column `name` of `kind`.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind }
    }
}

/// Consecutive cells of one column.
#[derive(Debug, Clone, Copy)]
pub enum Cells<'a> {
    /// `[rows]`, of [`Kind::Integer`].
    Integers(&'a [i64]),
    /// `[rows]`, of [`Kind::Text`].
    Texts(&'a [&'a str]),
    /// `[rows]`, of [`Kind::Float`].
    Floats(&'a [f32]),
    /// `[rows, width]`, of [`Kind::List`].
    Lists(&'a [f32]),
}

impl Cells<'_> {
    /// Number of rows, if the cells are of `kind` and the last list is complete.
    pub(super) fn rows(&self, kind: Kind) -> Option<usize> {
        match (self, kind) {
            (Self::Integers(values), Kind::Integer) => Some(values.len()),
            (Self::Texts(values), Kind::Text) => Some(values.len()),
            (Self::Floats(values), Kind::Float) => Some(values.len()),
            (Self::Lists(values), Kind::List(width)) => {
                values.len().is_multiple_of(width).then(|| values.len() / width)
            }
            _ => None,
        }
    }
}

/// A table that is being written. Dropping it leaves nothing behind.
pub trait Table: Send {
    /// Appends rows: cells of all columns in their order, as many of each.
    ///
    /// # Errors
    /// If the disk is full, or the format cannot have a cell. What was written is removed then, and
    /// the table accepts nothing more.
    fn append(&mut self, cells: &[Cells<'_>]) -> Result<()>;

    /// Completes the files and gives them their names.
    ///
    /// # Errors
    /// If rows are missing, the disk is full, or a file is in the way by now. Nothing is left then.
    fn finish(self: Box<Self>) -> Result<Written>;
}

/// The files of a finished table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file or folder that was asked for, and the file beside it, if there is one.
    pub files: Vec<PathBuf>,
    /// Their size in bytes.
    pub bytes: u64,
}

/// The error of a caller that contradicts itself.
pub(super) fn internal(out: &Path, what: impl std::fmt::Display) -> Error {
    Error::invalid(format!("{}: internal error: {what}", out.display()))
        .hint("this is a mistake in gnarl, not in its input")
}
