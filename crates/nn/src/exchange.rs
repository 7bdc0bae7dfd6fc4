//! All-to-all redistribution between node ranges and feature slices.

use std::ops::Range;

use gnarl_common::Result;

use crate::Tensor;

/// The collective operations of tensor parallelism (NeutronTP, Ai et al., PVLDB 2024, section 3.1).
///
/// A matrix over all nodes is distributed over the ranks either by node range, each rank with all
/// columns of its own nodes, or by feature slice, each rank with its slice of the columns of all
/// nodes. All ranks call the same methods in the same order.
pub trait Exchange: Sync {
    /// This rank's own node range.
    fn rows(&self) -> Range<usize>;

    /// This rank's feature slice of a matrix of `cols` columns; may be empty.
    fn columns(&self, cols: usize) -> Range<usize>;

    /// From node ranges to feature slices: `own nodes × cols` becomes `all nodes × own columns`.
    ///
    /// # Errors
    /// If a rank fails or does not take part. All other methods fail likewise.
    fn split(&self, rows: &Tensor) -> Result<Tensor>;

    /// The inverse of [`Exchange::split`], for a matrix of `cols` columns.
    fn gather(&self, columns: &Tensor, cols: usize) -> Result<Tensor>;

    /// Gathers the rows of all nodes on every rank; for narrow matrices.
    fn all_rows(&self, rows: &Tensor) -> Result<Tensor>;

    /// Reduces and scatters: own rows of the sum over all ranks, `all nodes × cols` to `own nodes ×
    /// cols`.
    fn sum_rows(&self, all: &Tensor) -> Result<Tensor>;

    /// Sums columns of heads that several ranks share. Let a matrix of `cols` columns consist of
    /// `heads` equally wide heads, and a rank have those of [`heads_in`] its slice: `own` has a column
    /// for each of these, and the result its sum over all ranks that have the head.
    fn sum_heads(&self, own: &Tensor, cols: usize, heads: usize) -> Result<Tensor>;

    /// Requests rows from their owners: `wanted` lists the nodes, ascending.
    fn route(&self, wanted: &[u32]) -> Result<Routes>;

    /// Fetches the requested rows: `own nodes × cols` becomes `wanted nodes × cols`.
    fn fetch(&self, rows: &Tensor, routes: &Routes) -> Result<Tensor>;

    /// The transpose of [`Exchange::fetch`]: sums what all ranks hold for the own rows.
    fn give_back(&self, wanted: &Tensor, routes: &Routes) -> Result<Tensor>;
}

/// The rows that ranks exchange, as requested by [`Exchange::route`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes {
    /// Per rank, the own rows that it requested, ascending.
    pub asked: Vec<Vec<u32>>,
    /// Per rank, the number of its rows that this rank requested.
    pub wanted: Vec<usize>,
}

/// The heads, of `width` columns each and side by side, that have some of `columns`.
pub fn heads_in(columns: &Range<usize>, width: usize) -> Range<usize> {
    match columns.is_empty() {
        true => 0..0,
        false => columns.start / width..columns.end.div_ceil(width),
    }
}
