//! Weights and learnt rows as one file.

use gnarl_common::{Error, Result};
use gnarl_nn::Params;
use gnarl_nn::state::{Matrix, about, from_bytes, to_bytes};
use serde::{Deserialize, Serialize};

use super::{Rows, TableSpec};
use crate::evaluation::Scores;
use crate::json;

/// What a file of weights says of itself, as JSON under `gnarl` in its metadata.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct About {
    /// Of the build that wrote it.
    pub version: String,
    /// `task.kind`.
    pub task: String,
    /// `model.name`.
    pub model: String,
    /// Classes, tasks or numbers that it predicts; 0 of none.
    pub classes: usize,
    /// Tells the dataset from others.
    pub dataset: String,
    /// `dataset.normalize`.
    pub normalize: String,
    /// The epoch that the weights are of; 0 of none.
    pub epoch: usize,
    /// Their validation scores.
    #[serde(deserialize_with = "json::floats")]
    pub valid: Scores,
}

/// Weights and the rows of each table as a safetensors file.
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

/// What [`model_to_bytes`] was told; nothing of a file of an older build.
///
/// # Errors
/// If the bytes are no safetensors file.
pub(crate) fn about_model(bytes: &[u8]) -> Result<Option<About>> {
    Ok(about(bytes)?.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Fills weights from what [`model_to_bytes`] wrote; returns the rows of each table.
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
