//! Sources of rows that are added up.

use std::ops::Range;

/// Rows of numbers, each of [`RowSource::cols`] values once it is read.
pub(crate) trait RowSource: Sync {
    /// Values of a row.
    fn cols(&self) -> usize;

    /// Bytes of all rows as they are stored.
    fn bytes(&self) -> usize;

    /// Bytes from one row to the next.
    fn row_bytes(&self) -> usize;

    /// How many entries ahead rows are fetched into cache.
    fn ahead(&self) -> usize;

    /// Memory that [`RowSource::add`] takes.
    fn scratch(&self) -> Vec<f32>;

    /// Fetches a row into cache.
    fn prefetch(&self, row: usize);

    /// `out += weight * row`, or `out = weight * row` if `fresh`.
    fn add(&self, out: &mut [f32], row: usize, weight: f32, fresh: bool, scratch: &mut [f32]);

    /// Adds the rows of `entries` of the indices, each times its weight, to `out`.
    #[inline(always)]
    fn add_all(
        &self,
        out: &mut [f32],
        entries: Range<usize>,
        indices: &[u32],
        weight: impl Fn(usize) -> f32,
        scratch: &mut [f32],
    ) {
        for entry in entries {
            self.add(out, indices[entry] as usize, weight(entry), false, scratch);
        }
    }
}
