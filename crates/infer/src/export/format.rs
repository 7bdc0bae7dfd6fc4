//! The seam between tables and the formats of their files.

use gnarl_common::Result;

use super::table::Cells;

/// Writes the rows of a table in one format. Columns, kinds and numbers of cells were checked.
pub(super) trait Format: Send {
    /// Appends `rows` rows.
    ///
    /// # Errors
    /// If the disk is full, or the format cannot have a cell.
    fn append(&mut self, cells: &[Cells<'_>], rows: usize) -> Result<()>;

    /// Completes the files.
    ///
    /// # Errors
    /// If the disk is full.
    fn finish(self: Box<Self>) -> Result<()>;
}
