//! Exchange of embeddings and gradients with their owners.

use gnarl_common::{Error, Kind, Result};
use gnarl_engine::Communicator;
use gnarl_nn::Tensor;
use gnarl_nn::optim::global_norm;
use gnarl_store::RowSource;
use gnarl_store::embedding::{Embedding, Summed};
use rayon::prelude::*;

use super::Table;

/// Gradients of a table's embeddings: an id may repeat.
#[derive(Debug, Clone, Default)]
pub struct RowGradients {
    ids: Vec<u64>,
    /// Rows of gradients, one for each id, piece by piece.
    pieces: Vec<Tensor>,
}

impl RowGradients {
    /// Appends a row of gradients for each of `ids`.
    ///
    /// # Panics
    /// If there are not as many rows.
    pub fn push(&mut self, ids: &[u64], rows: Tensor) {
        assert_eq!(ids.len(), rows.rows(), "a row of gradients for each id");
        self.ids.extend_from_slice(ids);
        self.pieces.push(rows);
    }

    /// All rows, in the order of their ids.
    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.pieces.iter().flat_map(|piece| (0..piece.rows()).map(|row| piece.row(row)))
    }

    /// Sums the gradients of each row of `rows`.
    ///
    /// # Errors
    /// If an id has no row there.
    pub fn sum(&self, rows: &Embedding) -> Result<Summed> {
        let gradients: Vec<&[f32]> = self.rows().collect();
        rows.sum_of(self.ids.par_iter().copied(), |i| gradients[i])
    }

    /// Appends another rank's message; `None` if the bytes are no rows of `width`.
    fn append(&mut self, bytes: &[u8], width: usize) -> Option<()> {
        let row = size_of::<u64>() + width * size_of::<f32>();
        if !bytes.len().is_multiple_of(row) {
            return None;
        }
        let rows = bytes.len() / row;
        let (ids, values) = bytes.split_at(rows * size_of::<u64>());
        self.ids.extend(ids.as_chunks().0.iter().map(|id| u64::from_le_bytes(*id)));
        let mut piece = Tensor::scratch(rows, width);
        let values = piece.data_mut().iter_mut().zip(values.as_chunks().0);
        values.for_each(|(out, value)| *out = f32::from_le_bytes(*value));
        self.pieces.push(piece);
        Some(())
    }
}

impl Table {
    /// Fetches the embeddings of `ids`, in that order, from their owners. A collective of all
    /// ranks, some perhaps without ids.
    ///
    /// # Errors
    /// If an id has no row or a rank fails.
    pub fn fetch(&self, comm: &dyn Communicator, ids: &[u64]) -> Result<Tensor> {
        let width = self.rows.width();
        let mut out = Tensor::scratch(ids.len(), width);
        if comm.size() == 1 {
            self.rows.fetch(ids, out.data_mut())?;
            return Ok(out);
        }
        let owners = self.owners_of(ids)?;
        let mut wanted = vec![Vec::new(); comm.size()];
        for (id, &owner) in ids.iter().zip(&owners) {
            wanted[owner].extend_from_slice(&id.to_le_bytes());
        }
        let asked = comm.all_to_all("ids of embeddings", wanted)?;
        let answers = asked.iter().map(|bytes| self.answer(bytes)).collect::<Result<_>>()?;
        let came = comm.all_to_all("embeddings", answers)?;
        // Each rank replies in the order of the request.
        let mut left: Vec<_> = came.iter().map(|bytes| bytes.as_chunks().0.iter()).collect();
        for (row, &owner) in out.data_mut().chunks_exact_mut(width).zip(&owners) {
            for value in row {
                let bytes = left[owner].next().ok_or_else(|| too_few(owner))?;
                *value = f32::from_le_bytes(*bytes);
            }
        }
        Ok(out)
    }

    /// Pushes gradients to their owners; returns all ranks' gradients of this rank's rows, joined
    /// in the order of ranks and summed by row. A collective of all ranks.
    ///
    /// # Errors
    /// If an id has no row or a rank fails.
    pub fn push(&self, comm: &dyn Communicator, gradients: &RowGradients) -> Result<Summed> {
        let ids = &gradients.ids;
        if comm.size() == 1 {
            return gradients.sum(&self.rows);
        }
        let (owners, width) = (self.owners_of(ids)?, self.rows.width());
        let mut outgoing = vec![Vec::new(); comm.size()];
        for (id, &owner) in ids.iter().zip(&owners) {
            outgoing[owner].extend_from_slice(&id.to_le_bytes());
        }
        for (row, &owner) in gradients.rows().zip(&owners) {
            outgoing[owner].extend_from_slice(bytemuck::cast_slice(row));
        }
        let mut joined = RowGradients::default();
        for (from, bytes) in comm.all_to_all("gradients of rows", outgoing)?.iter().enumerate() {
            joined.append(bytes, width).ok_or_else(|| {
                Error::new(Kind::Rank, format!("rank {from} sent invalid gradients of embeddings"))
            })?;
        }
        joined.sum(&self.rows)
    }

    /// The rank of each row.
    fn owners_of(&self, ids: &[u64]) -> Result<Vec<usize>> {
        let rows = self.owners.rows();
        let of = |&id: &u64| match id < rows {
            true => Ok(self.owners.of(id)),
            false => Err(Error::invalid(format!("{}: no row {id} of {rows}", self.name))),
        };
        ids.iter().map(of).collect()
    }

    /// The embeddings that another rank requested.
    fn answer(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let ids: Vec<u64> = bytes.as_chunks().0.iter().map(|id| u64::from_le_bytes(*id)).collect();
        let mut rows = vec![0.0; ids.len() * self.rows.width()];
        self.rows.fetch(&ids, &mut rows)?;
        Ok(bytemuck::cast_slice(&rows).to_vec())
    }
}

fn too_few(rank: usize) -> Error {
    Error::new(Kind::Rank, format!("rank {rank} sent too few embeddings"))
}

/// The contribution of some rows' gradients to the square of the global norm.
pub(crate) fn squares(rows: &[Summed]) -> f64 {
    rows.iter().map(|summed| f64::from(global_norm(summed.grads())).powi(2)).sum()
}

/// The contribution of the gradient of weights, likewise.
pub(crate) fn dense_squares(dense: &[f32]) -> f64 {
    f64::from(global_norm(dense)).powi(2)
}

/// Scales `dense` and `rows` down to the global norm `limit` if they exceed it together. `squares`
/// is that of `dense` and of the rows of all ranks.
pub(crate) fn clip(dense: &mut [f32], rows: &mut [Summed], squares: f64, limit: f32) {
    let norm = squares.sqrt() as f32;
    if norm > limit {
        let scale = limit / norm;
        let rows = rows.iter_mut().flat_map(|summed| summed.grads_mut());
        dense.iter_mut().chain(rows).for_each(|g| *g *= scale);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gnarl_common::Home;
    use gnarl_engine::local;

    use super::super::TableSpec;
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(60);

    fn spec() -> TableSpec {
        TableSpec::of_entities(5, 2)
    }

    fn gradients(ids: &[u64]) -> RowGradients {
        let values = ids.iter().flat_map(|&id| [id as f32, 1.0]).collect();
        let mut gradients = RowGradients::default();
        gradients.push(ids, Tensor::from_vec(ids.len(), 2, values));
        gradients
    }

    #[test]
    fn ranks_update_the_rows_that_one_would() {
        let updated = |shares: &[&[u64]]| {
            let values = local::run(shares.len(), DEADLINE, |comm| {
                let mut table = spec().share(None, (comm.rank(), comm.size()), &Home::Memory)?;
                let summed = table.push(comm, &gradients(shares[comm.rank()]))?;
                table.apply(&summed, 0.1)?;
                let order = [3, 0, 4, 2, 1];
                Ok(table.fetch(comm, &order)?.data().to_vec())
            });
            values.unwrap()
        };
        let alone = updated(&[&[1, 4, 1, 0]]).swap_remove(0);
        assert_ne!(alone, updated(&[&[]]).swap_remove(0));
        for values in updated(&[&[1, 4], &[], &[1, 0]]) {
            assert_eq!(values, alone);
        }
    }

    #[test]
    fn dense_and_sparse_gradients_are_clipped_together() {
        let table = spec().share(None, (0, 1), &Home::Memory).unwrap();
        let mut rows = vec![table.rows.sum(&[2], &[0.0, 4.0]).unwrap()];
        let mut dense = vec![3.0];
        let all = dense_squares(&dense) + squares(&rows);
        clip(&mut dense, &mut rows, all, 1.0);
        assert!((dense[0] - 0.6).abs() < 1e-6 && (rows[0].grads()[1] - 0.8).abs() < 1e-6);
        let all = dense_squares(&dense) + squares(&rows);
        clip(&mut dense, &mut rows, all, 2.0);
        assert!((dense[0] - 0.6).abs() < 1e-6, "a small gradient stays");
        // Rows of other ranks count too.
        let all = dense_squares(&dense) + 0.64;
        clip(&mut dense, &mut [], all, 0.5);
        assert!((dense[0] - 0.3).abs() < 1e-6);
    }

    #[test]
    fn bytes_of_something_else_are_told() {
        assert!(RowGradients::default().append(&[1, 2, 3], 2).is_none());
        assert!(RowGradients::default().append(&7u64.to_le_bytes(), 2).is_none());
    }

    #[test]
    fn a_row_that_is_not_there_is_told() {
        let message = local::run(2, DEADLINE, |comm| {
            let table = spec().share(None, (comm.rank(), comm.size()), &Home::Memory)?;
            table.fetch(comm, &[5]).map(drop)
        });
        let text = message.unwrap_err().to_string();
        assert!(text.contains("entity: no row 5 of 5"), "{text}");
    }
}
