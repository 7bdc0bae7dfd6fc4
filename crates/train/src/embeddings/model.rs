//! Weights and embeddings as one file.

use gnarl_common::{Error, Result};
use gnarl_nn::Params;
use gnarl_nn::state::{Matrix, about, from_bytes, to_bytes};
use serde::{Deserialize, Serialize};

use super::{Rows, TableSpec};
use crate::evaluation::Scores;
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

/// Weights and embedding tables as a safetensors file.
///
/// # Errors
/// If the format cannot hold them.
pub(crate) fn model_to_bytes(
    params: &Params,
    tables: &[TableSpec],
    rows: Vec<Rows<'_>>,
    about: &About,
) -> Result<Vec<u8>> {
    let matrix = |(table, rows): (&TableSpec, Rows<'_>)| Matrix {
        name: table.name.clone(),
        shape: (table.count as usize, table.width),
        values: rows.values.into_owned(),
    };
    let about = serde_json::to_string(about)
        .map_err(|e| Error::invalid(format!("the model cannot be described: {e}")))?;
    to_bytes(params, &tables.iter().zip(rows).map(matrix).collect::<Vec<_>>(), Some(about))
}

/// The metadata from [`model_to_bytes`]; none in a file of an older build.
///
/// # Errors
/// If the bytes are no safetensors file.
pub(crate) fn about_model(bytes: &[u8]) -> Result<Option<About>> {
    Ok(about(bytes)?.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Fills weights from the output of [`model_to_bytes`]; returns the embeddings of each table.
///
/// # Errors
/// If the bytes are of another model.
pub(crate) fn model_from_bytes(
    params: &mut Params,
    tables: &[TableSpec],
    bytes: &[u8],
) -> Result<Vec<Rows<'static>>> {
    let shape = |table: &TableSpec| (table.name.clone(), (table.count as usize, table.width));
    let shapes: Vec<_> = tables.iter().map(shape).collect();
    let values = from_bytes(params, &shapes, bytes)?;
    let rows = |(values, table): (Vec<f32>, &TableSpec)| Rows {
        width: table.width,
        values: values.into(),
    };
    Ok(values.into_iter().zip(tables).map(rows).collect())
}
