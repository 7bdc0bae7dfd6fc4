//! Features of edges, which samplers read with the edges they choose.

use std::fmt;
use std::sync::Arc;

use gnarl_common::Result;

/// A column of features of edges, wherever it is stored.
pub trait EdgeFeatures: Send + Sync {
    /// Number of rows.
    fn rows(&self) -> u64;

    /// Values of a row.
    fn width(&self) -> usize;

    /// Appends row `row`.
    ///
    /// # Errors
    /// If it cannot be read.
    fn append(&self, row: u64, out: &mut Vec<f32>) -> Result<()>;
}

/// Shared features of edges.
#[derive(Clone)]
pub(crate) struct Shared(pub Arc<dyn EdgeFeatures>);

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} features of {} edges", self.0.width(), self.0.rows())
    }
}
