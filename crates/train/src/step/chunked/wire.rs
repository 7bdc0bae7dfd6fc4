//! Feature slices of all nodes.

use super::layout::Columns;
use super::matrix::Matrix;

/// This rank's feature slice of a matrix over all nodes.
pub(super) struct Wire {
    pub matrix: Matrix,
    /// Columns of all ranks.
    pub columns: Columns,
}
