//! Ranks that share out the rows of matrices share out their columns instead, and back.

use std::ops::Range;

use gnarl_common::Result;

use crate::Tensor;

/// What tensor parallelism asks of a group of ranks (NeutronTP, Ai et al., PVLDB 2024, section 3.1).
///
/// A matrix over all nodes is with the ranks either by rows, each having all columns of its own nodes,
/// or by columns, each having its columns of all nodes. All ranks call the same methods in the same
/// order.
pub trait Exchange: Sync {
    /// The nodes whose rows are this rank's.
    fn rows(&self) -> Range<usize>;

    /// This rank's columns of a matrix of `cols`; may be empty.
    fn columns(&self, cols: usize) -> Range<usize>;

    /// From own rows to own columns: `own nodes × cols` becomes `all nodes × own columns`.
    ///
    /// # Errors
    /// If a rank fails or does not come. All other methods fail likewise.
    fn split(&self, rows: &Tensor) -> Result<Tensor>;

    /// The opposite of [`Exchange::split`], for a matrix of `cols` columns.
    fn gather(&self, columns: &Tensor, cols: usize) -> Result<Tensor>;

    /// The rows of all nodes on every rank; for narrow matrices.
    fn all_rows(&self, rows: &Tensor) -> Result<Tensor>;

    /// The own rows of the sum of what all ranks have: `all nodes × cols` becomes `own nodes × cols`.
    fn sum_rows(&self, all: &Tensor) -> Result<Tensor>;

    /// Tells every rank which of its rows this one wants: those of the nodes `wanted`, which ascend.
    fn route(&self, wanted: &[u32]) -> Result<Routes>;

    /// The rows that were wanted: `own nodes × cols` becomes `wanted nodes × cols`.
    fn fetch(&self, rows: &Tensor, routes: &Routes) -> Result<Tensor>;

    /// The opposite of [`Exchange::fetch`]: sums of what all ranks have of the own rows.
    fn give_back(&self, wanted: &Tensor, routes: &Routes) -> Result<Tensor>;
}

/// Rows that ranks give each other, whichever nodes they are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes {
    /// For each rank which of this rank's rows it wants, ascending.
    pub asked: Vec<Vec<u32>>,
    /// For each rank how many of its rows this one wants.
    pub wanted: Vec<usize>,
}
