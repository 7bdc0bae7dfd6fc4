//! Exchange of rows and columns over a communicator.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use gnarl_engine::Communicator;
use gnarl_graph::{Error, Kind, Result};
use gnarl_nn::{Exchange, Tensor};

use crate::shares::even_share;

/// Shares of the rows of all nodes, and of columns, that differ by one at most.
pub(super) struct Columns<'a> {
    rank: &'a dyn Communicator,
    nodes: usize,
    /// Bytes sent to other ranks so far.
    sent: AtomicU64,
    /// Nanoseconds of exchanges so far, waiting included.
    nanos: AtomicU64,
    /// Own columns of all rows so far.
    taken: AtomicU64,
}

impl<'a> Columns<'a> {
    pub fn new(rank: &'a dyn Communicator, nodes: usize) -> Self {
        let [sent, nanos, taken] = Default::default();
        Self { rank, nodes, sent, nanos, taken }
    }

    /// Bytes sent to other ranks so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Nanoseconds that exchanges have taken so far: transfer, and waiting for other ranks. What is
    /// sent is put together, and what has come is taken apart, before and after.
    pub fn nanos(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed)
    }

    /// Columns that this rank has had of all rows so far, for messages to pass over.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    fn rows_of(&self, rank: usize) -> Range<usize> {
        even_share(self.nodes, rank, self.rank.size())
    }

    fn columns_of(&self, rank: usize, cols: usize) -> Range<usize> {
        even_share(cols, rank, self.rank.size())
    }

    /// Gives `of(r)` to each rank `r`; returns what each gave, of `wanted(r)` values.
    fn exchange(
        &self,
        stage: &str,
        of: impl Fn(usize) -> Vec<u8>,
        wanted: impl Fn(usize) -> usize,
    ) -> Result<Vec<Vec<u8>>> {
        let own = self.rank.rank();
        let outgoing: Vec<Vec<u8>> = (0..self.rank.size()).map(of).collect();
        let others = outgoing.iter().enumerate().filter(|(r, _)| *r != own);
        self.sent.fetch_add(others.map(|(_, bytes)| bytes.len() as u64).sum(), Ordering::Relaxed);
        let start = Instant::now();
        let incoming = self.rank.all_to_all(stage, outgoing)?;
        self.nanos.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        for (from, bytes) in incoming.iter().enumerate() {
            let (found, wanted) = (bytes.len(), wanted(from) * size_of::<f32>());
            if found != wanted {
                let message =
                    format!("{stage}: {found} bytes of rank {from} where {wanted} are due");
                return Err(Error::new(Kind::Rank, message));
            }
        }
        Ok(incoming)
    }
}

impl Exchange for Columns<'_> {
    fn rows(&self) -> Range<usize> {
        self.rows_of(self.rank.rank())
    }

    fn columns(&self, cols: usize) -> Range<usize> {
        self.columns_of(self.rank.rank(), cols)
    }

    fn split(&self, rows: &Tensor) -> Result<Tensor> {
        if self.rank.size() == 1 {
            return Ok(rows.clone());
        }
        let (own, cols) = (self.columns(rows.cols()).len(), rows.cols());
        self.taken.fetch_add(own as u64, Ordering::Relaxed);
        let of = |rank| {
            let columns = self.columns_of(rank, cols);
            let mut bytes = Vec::with_capacity(rows.rows() * columns.len() * size_of::<f32>());
            for row in 0..rows.rows() {
                bytes.extend_from_slice(bytemuck::cast_slice(&rows.row(row)[columns.clone()]));
            }
            bytes
        };
        let incoming =
            self.exchange("rows to columns", of, |from| self.rows_of(from).len() * own)?;
        // Ranks have their rows in order: one after the other they are all rows.
        let mut all = Tensor::scratch(self.nodes, own);
        write(all.data_mut(), incoming.iter().flat_map(|bytes| bytes.as_chunks().0));
        Ok(all)
    }

    fn gather(&self, columns: &Tensor, cols: usize) -> Result<Tensor> {
        if self.rank.size() == 1 {
            return Ok(columns.clone());
        }
        let (width, own) = (columns.cols(), self.rows());
        let of = |rank| {
            let rows = self.rows_of(rank);
            bytemuck::cast_slice(&columns.data()[rows.start * width..rows.end * width]).to_vec()
        };
        let wanted = |from| own.len() * self.columns_of(from, cols).len();
        let incoming = self.exchange("columns to rows", of, wanted)?;
        let mut rows = Tensor::scratch(own.len(), cols);
        for (from, bytes) in incoming.iter().enumerate() {
            let columns = self.columns_of(from, cols);
            if columns.is_empty() {
                continue;
            }
            let parts = bytes.chunks_exact(columns.len() * size_of::<f32>());
            for (row, part) in rows.data_mut().chunks_exact_mut(cols).zip(parts) {
                write(&mut row[columns.clone()], part.as_chunks().0);
            }
        }
        Ok(rows)
    }

    fn all_rows(&self, rows: &Tensor) -> Result<Tensor> {
        if self.rank.size() == 1 {
            return Ok(rows.clone());
        }
        let cols = rows.cols();
        let of = |_| bytemuck::cast_slice(rows.data()).to_vec();
        let incoming = self.exchange("rows to all", of, |from| self.rows_of(from).len() * cols)?;
        let mut all = Tensor::scratch(self.nodes, cols);
        write(all.data_mut(), incoming.iter().flat_map(|bytes| bytes.as_chunks().0));
        Ok(all)
    }

    fn sum_rows(&self, all: &Tensor) -> Result<Tensor> {
        if self.rank.size() == 1 {
            return Ok(all.clone());
        }
        let (cols, own) = (all.cols(), self.rows());
        let of = |rank| {
            let rows = self.rows_of(rank);
            bytemuck::cast_slice(&all.data()[rows.start * cols..rows.end * cols]).to_vec()
        };
        let incoming = self.exchange("sums of rows", of, |_| own.len() * cols)?;
        let mut rows = Tensor::zeros(own.len(), cols);
        // In the order of ranks, so that sums are the same in every run.
        for bytes in &incoming {
            for (sum, term) in rows.data_mut().iter_mut().zip(bytes.as_chunks().0) {
                *sum += f32::from_le_bytes(*term);
            }
        }
        Ok(rows)
    }
}

/// Writes values as they came; bytes need no alignment.
fn write<'a>(out: &mut [f32], bytes: impl IntoIterator<Item = &'a [u8; 4]>) {
    for (value, bytes) in out.iter_mut().zip(bytes) {
        *value = f32::from_le_bytes(*bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gnarl_engine::local;

    use super::*;

    /// The value at a row and a column, different everywhere.
    fn value(row: usize, col: usize) -> f32 {
        (100 * row + col) as f32
    }

    fn matrix(rows: Range<usize>, cols: Range<usize>) -> Tensor {
        let all = rows.clone().flat_map(|r| cols.clone().map(move |c| value(r, c)));
        Tensor::from_vec(rows.len(), cols.len(), all.collect())
    }

    #[test]
    fn columns_come_from_rows_and_go_back() {
        for (ranks, nodes, cols) in [(1, 5, 3), (2, 7, 5), (3, 10, 2), (4, 3, 9)] {
            local::run(ranks, Duration::from_secs(20), |rank| {
                let exchange = Columns::new(rank, nodes);
                let (own, columns) = (exchange.rows(), exchange.columns(cols));
                let rows = matrix(own.clone(), 0..cols);
                let slice = exchange.split(&rows)?;
                assert_eq!(slice.data(), matrix(0..nodes, columns.clone()).data());
                // Everything but what stays: own rows of own columns.
                let sent = 4 * own.len() * (cols - columns.len());
                assert_eq!(exchange.sent(), sent as u64);
                let taken = if ranks > 1 { columns.len() as u64 } else { 0 };
                assert_eq!(exchange.taken(), taken);
                assert_eq!(exchange.nanos() > 0, ranks > 1);
                assert_eq!(exchange.gather(&slice, cols)?.data(), rows.data());
                let all = exchange.all_rows(&rows)?;
                assert_eq!(all.data(), matrix(0..nodes, 0..cols).data());
                let sums = exchange.sum_rows(&all)?;
                let times = |v: &f32| v * ranks as f32;
                assert_eq!(sums.data(), rows.data().iter().map(times).collect::<Vec<_>>());
                Ok(())
            })
            .unwrap();
        }
    }
}
