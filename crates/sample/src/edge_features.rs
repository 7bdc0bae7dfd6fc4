//! Features of edges, which samplers read with the edges they choose.

use std::fmt;
use std::sync::Arc;

use gnarl_common::Result;
use gnarl_graph::blocks::EdgeRows;
use gnarl_graph::{Column, Features};
use gnarl_store::{FeatureStore, MappedFeatures, Normalize};

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

/// Rows in memory.
impl EdgeFeatures for EdgeRows {
    fn rows(&self) -> u64 {
        (self.values.len() / self.width.max(1)) as u64
    }

    fn width(&self) -> usize {
        self.width
    }

    fn append(&self, row: u64, out: &mut Vec<f32>) -> Result<()> {
        let first = row as usize * self.width;
        out.extend_from_slice(&self.values[first..first + self.width]);
        Ok(())
    }
}

/// A mapped column.
struct Mapped(MappedFeatures);

impl EdgeFeatures for Mapped {
    fn rows(&self) -> u64 {
        self.0.rows() as u64
    }

    fn width(&self) -> usize {
        self.0.width()
    }

    fn append(&self, row: u64, out: &mut Vec<f32>) -> Result<()> {
        let first = out.len();
        out.resize(first + self.width(), 0.0);
        self.0.copy_row(row, &mut out[first..])
    }
}

/// The features in a column, mapped in their stored type.
///
/// # Errors
/// If that type cannot be widened to f32.
pub(crate) fn mapped(column: Column) -> Result<Arc<dyn EdgeFeatures>> {
    let features = MappedFeatures::new(Features::Dense(column), Normalize::None)?;
    Ok(Arc::new(Mapped(features)))
}

/// Shared features of edges.
#[derive(Clone)]
pub(crate) struct Shared(pub Arc<dyn EdgeFeatures>);

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} features of {} edges", self.0.width(), self.0.rows())
    }
}
