//! Rows that are learnt, as a run has them: every rank has all of them, and makes the same updates.

use std::fmt;

use gnarl_engine::Communicator;
use gnarl_graph::{Error, Kind, Result};
use gnarl_nn::optim::global_norm;
use gnarl_nn::state::{Matrix, from_bytes, to_bytes};
use gnarl_nn::{Params, Tensor};
use gnarl_store::RowSource;
use gnarl_store::embedding::{Embedding, Summed};

/// A named table of learnt rows.
#[derive(Clone)]
pub struct Table {
    /// Names it in checkpoints.
    pub name: String,
    /// The rows, with the state of their optimizer.
    pub rows: Embedding,
    /// Rows of the best evaluation so far.
    pub best: Vec<f32>,
}

/// Gradients of the rows of a table: an id may be there several times.
#[derive(Debug, Clone, Default)]
pub struct RowGradients {
    ids: Vec<u64>,
    values: Vec<f32>,
}

impl Table {
    /// A table at its start.
    pub fn new(name: impl Into<String>, rows: Embedding) -> Self {
        let best = rows.values().to_vec();
        Self { name: name.into(), rows, best }
    }

    /// The rows of `ids`, in that order.
    ///
    /// # Errors
    /// If an id has none.
    pub fn gather(&self, ids: &[u64]) -> Result<Tensor> {
        let mut out = Tensor::scratch(ids.len(), self.rows.width());
        self.rows.fetch(ids, out.data_mut())?;
        Ok(out)
    }

    /// What all ranks have of `gradients`, joined in the order of ranks and summed by row.
    ///
    /// # Errors
    /// If a rank fails or an id has no row.
    pub fn join(&self, rank: &dyn Communicator, gradients: &RowGradients) -> Result<Summed> {
        if rank.size() == 1 {
            return self.rows.sum(&gradients.ids, &gradients.values);
        }
        let mut bytes = (gradients.ids.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(bytemuck::cast_slice(&gradients.ids));
        bytes.extend_from_slice(bytemuck::cast_slice(&gradients.values));
        let mut joined = RowGradients::default();
        for (from, bytes) in rank.all_gather("gradients of rows", &bytes)?.iter().enumerate() {
            joined.append(bytes).ok_or_else(|| {
                Error::new(Kind::Rank, format!("rank {from} sent no gradients of rows"))
            })?;
        }
        self.rows.sum(&joined.ids, &joined.values)
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({}: {} × {})", self.name, self.rows.ids().len(), self.rows.width())
    }
}

impl RowGradients {
    /// Adds a row of gradients for each of `ids`.
    ///
    /// # Panics
    /// If there are not as many rows.
    pub fn push(&mut self, ids: &[u64], rows: &Tensor) {
        assert_eq!(ids.len(), rows.rows(), "a row of gradients for each id");
        self.ids.extend_from_slice(ids);
        self.values.extend_from_slice(rows.data());
    }

    /// Adds what another rank sent; `None` if the bytes are of no such thing.
    fn append(&mut self, bytes: &[u8]) -> Option<()> {
        let (count, rest) = bytes.split_first_chunk()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        let (ids, values) = rest.split_at_checked(count.checked_mul(8)?)?;
        self.ids.extend(ids.as_chunks().0.iter().map(|id| u64::from_le_bytes(*id)));
        self.values.extend(values.as_chunks().0.iter().map(|v| f32::from_le_bytes(*v)));
        (values.len() % 4 == 0).then_some(())
    }
}

/// Scales `dense` and `rows` down to the global norm `limit` if they exceed it together.
pub(crate) fn clip(dense: &mut [f32], rows: &mut [Summed], limit: f32) {
    let squares = rows.iter().map(|summed| f64::from(global_norm(summed.grads())).powi(2));
    let norm = (f64::from(global_norm(dense)).powi(2) + squares.sum::<f64>()).sqrt() as f32;
    if norm > limit {
        let scale = limit / norm;
        let rows = rows.iter_mut().flat_map(|summed| summed.grads_mut());
        dense.iter_mut().chain(rows).for_each(|g| *g *= scale);
    }
}

/// Weights and learnt rows as a safetensors file.
///
/// # Errors
/// If the format cannot hold them.
pub(crate) fn model_to_bytes(params: &Params, tables: &[Table]) -> Result<Vec<u8>> {
    let matrix = |table: &Table| Matrix {
        name: table.name.clone(),
        shape: (table.rows.ids().len(), table.rows.width()),
        values: table.rows.values().to_vec(),
    };
    to_bytes(params, &tables.iter().map(matrix).collect::<Vec<_>>())
}

/// Fills weights and learnt rows from what [`model_to_bytes`] wrote.
///
/// # Errors
/// If the bytes are of another model.
pub(crate) fn model_from_bytes(
    params: &mut Params,
    tables: &mut [Table],
    bytes: &[u8],
) -> Result<()> {
    let shapes: Vec<_> = tables
        .iter()
        .map(|table| (table.name.clone(), (table.rows.ids().len(), table.rows.width())))
        .collect();
    for (table, values) in tables.iter_mut().zip(from_bytes(params, &shapes, bytes)?) {
        table.rows.values_mut().copy_from_slice(&values);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use gnarl_engine::local;
    use gnarl_graph::rng::Key;
    use gnarl_store::embedding::SparseAdagrad;

    fn table() -> Table {
        let adagrad = Box::new(SparseAdagrad::new(1e-10).unwrap());
        let rows = Embedding::new((0..5).collect(), 2, 0.5, Key::new(1), adagrad).unwrap();
        Table::new("entity", rows)
    }

    fn gradients(ids: &[u64]) -> RowGradients {
        let values = ids.iter().flat_map(|&id| [id as f32, 1.0]).collect();
        let mut gradients = RowGradients::default();
        gradients.push(ids, &Tensor::from_vec(ids.len(), 2, values));
        gradients
    }

    #[test]
    fn ranks_update_the_rows_that_one_would() {
        let updated = |shares: &[&[u64]]| {
            let values = local::run(shares.len(), Duration::from_secs(60), |rank| {
                let mut table = table();
                let summed = table.join(rank, &gradients(shares[rank.rank()]))?;
                table.rows.apply(&summed, 0.1);
                Ok(table.rows.values().to_vec())
            });
            values.unwrap()
        };
        let alone = updated(&[&[1, 4, 1, 0]]).swap_remove(0);
        assert_ne!(alone, table().rows.values());
        for values in updated(&[&[1, 4], &[], &[1, 0]]) {
            assert_eq!(values, alone);
        }
    }

    #[test]
    fn dense_and_sparse_gradients_are_clipped_together() {
        let table = table();
        let mut dense = vec![3.0];
        let mut rows = vec![table.rows.sum(&[2], &[0.0, 4.0]).unwrap()];
        clip(&mut dense, &mut rows, 1.0);
        assert!((dense[0] - 0.6).abs() < 1e-6 && (rows[0].grads()[1] - 0.8).abs() < 1e-6);
        clip(&mut dense, &mut rows, 2.0);
        assert!((dense[0] - 0.6).abs() < 1e-6, "a small gradient stays");
    }

    #[test]
    fn bytes_of_something_else_are_told() {
        assert!(RowGradients::default().append(&[1, 2, 3]).is_none());
        assert!(RowGradients::default().append(&7u64.to_le_bytes()).is_none());
    }
}
