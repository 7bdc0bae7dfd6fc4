//! The interface of row sources: another machine, a cache, a table.

use std::sync::Arc;

use gnarl_common::{Error, Result};

/// Rows of `f32` by dataset id, local or remote.
///
/// Unlike a [`FeatureStore`](crate::FeatureStore) it takes ids of the whole dataset, which all
/// machines agree on.
pub trait RowSource: Send + Sync {
    /// Row width.
    fn width(&self) -> usize;

    /// Fetches the rows of `ids` into `out`, `ids.len()` × `width` values, in the order of `ids`.
    /// Ids may repeat.
    ///
    /// # Errors
    /// If an id has no row, `out` is not of that length, or the source is unreachable. `out` may
    /// be partly written then.
    fn fetch(&self, ids: &[u64], out: &mut [f32]) -> Result<()>;
}

impl<S: RowSource + ?Sized> RowSource for Arc<S> {
    fn width(&self) -> usize {
        (**self).width()
    }

    fn fetch(&self, ids: &[u64], out: &mut [f32]) -> Result<()> {
        (**self).fetch(ids, out)
    }
}

/// Checks that `values` are `rows` × `width`.
pub(crate) fn check_len<T>(values: &[T], rows: usize, width: usize) -> Result<()> {
    if rows.checked_mul(width) == Some(values.len()) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "expected {rows} rows of width {width}, found {} values",
        values.len()
    )))
}

/// Value range of row `index` among rows of `width` values.
pub(crate) fn span(index: usize, width: usize) -> std::ops::Range<usize> {
    index * width..(index + 1) * width
}
