//! Weights and embeddings as one file.

use std::path::Path;

use gnarl_common::staging::AtomicFile;
use gnarl_common::{Buf, Error, Result, ResultExt};
use gnarl_nn::Params;
use gnarl_nn::state::{Matrix, about, from_file, write};
use serde::{Deserialize, Serialize};

use super::gather::Values;
use super::{Rows, TableSpec};
use crate::evaluation::Scores;
use crate::faults;
use crate::json;

/// The metadata of a weights file, as JSON under `gnarl`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct About {
    /// Version of the build that wrote it.
    pub version: String,
    /// `task.kind`.
    pub task: String,
    /// `model.name`.
    pub model: String,
    /// Number of classes, tasks or values predicted; 0 if none.
    pub classes: usize,
    /// Fingerprint of the dataset.
    pub dataset: String,
    /// `dataset.normalize`.
    pub normalize: String,
    /// Epoch of the weights; 0 if none.
    pub epoch: usize,
    /// Validation scores of the weights.
    #[serde(deserialize_with = "json::floats")]
    pub valid: Scores,
}

/// Writes weights and embedding tables to the safetensors file at `path`, entirely or not at all.
///
/// # Errors
/// If the format cannot hold them, or the disk is full.
pub(crate) fn write_model(
    path: &Path,
    params: &Params,
    (tables, rows): (&[TableSpec], &[Rows<'_>]),
    about: &About,
) -> Result<()> {
    let about = serde_json::to_string(about)
        .map_err(|e| Error::invalid(format!("the model cannot be described: {e}")))?;
    let mut matrices = Vec::with_capacity(tables.len());
    for (table, rows) in tables.iter().zip(rows) {
        let (name, shape) = (table.name.clone(), (table.count as usize, table.width));
        matrices.push(Matrix { name, shape, values: &rows.values });
    }
    let mut file = AtomicFile::create(path)?;
    write(&mut file, params, &matrices, about)?.at(path)?;
    faults::reached("replace");
    file.commit()
}

/// The metadata from [`write_model`]; none in a file of an older build.
///
/// # Errors
/// If the bytes are no safetensors file.
pub(crate) fn about_model(bytes: &[u8]) -> Result<Option<About>> {
    Ok(about(bytes)?.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Fills weights from the file of [`write_model`]; returns the embeddings of each table, which stay there.
///
/// # Errors
/// If the file is of another model.
pub(crate) fn read_model(
    params: &mut Params,
    tables: &[TableSpec],
    file: &Buf<u8>,
) -> Result<Vec<Rows<'static>>> {
    let shape = |table: &TableSpec| (table.name.clone(), (table.count as usize, table.width));
    let shapes: Vec<_> = tables.iter().map(shape).collect();
    let values = from_file(params, &shapes, file)?;
    let rows = |(values, table): (Buf<f32>, &TableSpec)| Rows {
        width: table.width,
        values: Values::Shared(values),
    };
    Ok(values.into_iter().zip(tables).map(rows).collect())
}
