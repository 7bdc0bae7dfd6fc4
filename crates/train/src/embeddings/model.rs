//! Weights and learnt rows as one file.

use gnarl_graph::Result;
use gnarl_nn::Params;
use gnarl_nn::state::{Matrix, from_bytes, to_bytes};

use super::{Rows, TableSpec};

/// Weights and the rows of each table as a safetensors file.
///
/// # Errors
/// If the format cannot hold them.
pub(crate) fn model_to_bytes(
    params: &Params,
    tables: &[TableSpec],
    rows: Vec<Rows<'_>>,
) -> Result<Vec<u8>> {
    let matrix = |(table, rows): (&TableSpec, Rows<'_>)| Matrix {
        name: table.name.clone(),
        shape: (table.count as usize, table.width),
        values: rows.values.into_owned(),
    };
    to_bytes(params, &tables.iter().zip(rows).map(matrix).collect::<Vec<_>>())
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
