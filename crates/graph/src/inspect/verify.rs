//! Integrity checks of a dataset's files.

use gnarl_common::{Context, Result};
use serde::Serialize;

use crate::column::{Column, ColumnSpec};
use crate::dataset::Dataset;

/// The result of [`verify`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Columns with the right checksum.
    pub columns: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Recomputes the checksums of all columns, each by all threads.
///
/// # Errors
/// At the first column that is missing, truncated or changed, naming its file.
pub fn verify(dataset: &Dataset) -> Result<Verified> {
    let manifest = dataset.manifest();
    let nodes = manifest.node_types.iter().flat_map(|t| &t.columns);
    let edges = manifest.edge_types.iter().flat_map(|t| &t.columns);
    let mut verified = Verified::default();
    for spec in nodes.chain(edges) {
        verified.bytes += check(dataset, spec)
            .while_doing(|| format!("verifying {}", dataset.dir().display()))?;
        verified.columns += 1;
    }
    Ok(verified)
}

fn check(dataset: &Dataset, spec: &ColumnSpec) -> Result<u64> {
    let column = Column::open(dataset.dir(), spec)?;
    column.verify()?;
    Ok(column.bytes().len() as u64)
}
