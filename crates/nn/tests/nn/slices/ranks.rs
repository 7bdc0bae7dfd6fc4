//! The exchange of tensor parallelism over ranks that are threads.

use std::ops::Range;

use gnarl_common::Result;
use gnarl_common::threads::even_share;
use gnarl_engine::Communicator;
use gnarl_nn::{Exchange, Routes, Tensor, heads_in};

/// Rows of all ranks, in their order.
pub struct Ranks<'a> {
    comm: &'a dyn Communicator,
    /// First row of each rank, and the number of rows.
    bounds: Vec<usize>,
}

impl<'a> Ranks<'a> {
    pub fn new(comm: &'a dyn Communicator, bounds: Vec<usize>) -> Self {
        Self { comm, bounds }
    }

    fn rows_of(&self, rank: usize) -> Range<usize> {
        self.bounds[rank]..self.bounds[rank + 1]
    }

    fn columns_of(&self, rank: usize, cols: usize) -> Range<usize> {
        even_share(cols, rank, self.comm.size())
    }

    /// Sends a block of `of` to each rank, and returns the values from each.
    fn swap(
        &self,
        of: &Tensor,
        block: impl Fn(usize) -> (Range<usize>, Range<usize>),
    ) -> Result<Vec<Vec<f32>>> {
        let outgoing = (0..self.comm.size()).map(|rank| {
            let (rows, columns) = block(rank);
            let values = rows.flat_map(|row| of.row(row)[columns.clone()].to_vec());
            bytemuck::cast_slice(&values.collect::<Vec<f32>>()).to_vec()
        });
        let incoming = self.comm.all_to_all("blocks", outgoing.collect())?;
        let values = |bytes: Vec<u8>| {
            let values = bytes.as_chunks().0.iter();
            values.map(|value| f32::from_le_bytes(*value)).collect()
        };
        Ok(incoming.into_iter().map(values).collect())
    }
}

impl Exchange for Ranks<'_> {
    fn rows(&self) -> Range<usize> {
        self.rows_of(self.comm.rank())
    }

    fn columns(&self, cols: usize) -> Range<usize> {
        self.columns_of(self.comm.rank(), cols)
    }

    fn split(&self, rows: &Tensor) -> Result<Tensor> {
        let all = (0..rows.rows(), rows.cols());
        let came = self.swap(rows, |rank| (all.0.clone(), self.columns_of(rank, all.1)))?;
        let total = self.bounds[self.comm.size()];
        Ok(Tensor::from_vec(total, self.columns(all.1).len(), came.concat()))
    }

    fn gather(&self, columns: &Tensor, cols: usize) -> Result<Tensor> {
        let came = self.swap(columns, |rank| (self.rows_of(rank), 0..columns.cols()))?;
        let own = self.rows().len();
        let row = |row: usize| {
            came.iter().enumerate().flat_map(move |(rank, values)| {
                let width = self.columns_of(rank, cols).len();
                values[row * width..(row + 1) * width].to_vec()
            })
        };
        Ok(Tensor::from_vec(own, cols, (0..own).flat_map(row).collect()))
    }

    fn all_rows(&self, rows: &Tensor) -> Result<Tensor> {
        let came = self.swap(rows, |_| (0..rows.rows(), 0..rows.cols()))?;
        Ok(Tensor::from_vec(self.bounds[self.comm.size()], rows.cols(), came.concat()))
    }

    fn sum_rows(&self, all: &Tensor) -> Result<Tensor> {
        let came = self.swap(all, |rank| (self.rows_of(rank), 0..all.cols()))?;
        let mut sums = Tensor::zeros(self.rows().len(), all.cols());
        for values in came {
            sums.data_mut().iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        Ok(sums)
    }

    fn sum_heads(&self, own: &Tensor, cols: usize, heads: usize) -> Result<Tensor> {
        let of = |rank| heads_in(&self.columns_of(rank, cols), cols / heads);
        let mine = of(self.comm.rank());
        let shared = |rank| {
            let other = of(rank);
            let start = other.start.clamp(mine.start, mine.end) - mine.start;
            start..other.end.clamp(mine.start, mine.end) - mine.start
        };
        let came = self.swap(own, |rank| (0..own.rows(), shared(rank)))?;
        let mut sums = Tensor::zeros(own.rows(), own.cols());
        for (rank, values) in came.iter().enumerate() {
            let (heads, mut values) = (shared(rank), values.iter());
            for row in sums.data_mut().chunks_exact_mut(own.cols().max(1)) {
                row[heads.clone()].iter_mut().zip(&mut values).for_each(|(sum, v)| *sum += v);
            }
        }
        Ok(sums)
    }

    fn route(&self, _: &[u32]) -> Result<Routes> {
        unreachable!("models request no rows")
    }

    fn fetch(&self, _: &Tensor, _: &Routes) -> Result<Tensor> {
        unreachable!("models request no rows")
    }

    fn give_back(&self, _: &Tensor, _: &Routes) -> Result<Tensor> {
        unreachable!("models request no rows")
    }
}

/// The exchange of a rank that has all rows, however many.
pub struct Alone;

impl Exchange for Alone {
    fn rows(&self) -> Range<usize> {
        unreachable!("models do not ask")
    }

    fn columns(&self, cols: usize) -> Range<usize> {
        0..cols
    }

    fn split(&self, rows: &Tensor) -> Result<Tensor> {
        Ok(rows.clone())
    }

    fn gather(&self, columns: &Tensor, _: usize) -> Result<Tensor> {
        Ok(columns.clone())
    }

    fn all_rows(&self, rows: &Tensor) -> Result<Tensor> {
        Ok(rows.clone())
    }

    fn sum_rows(&self, all: &Tensor) -> Result<Tensor> {
        Ok(all.clone())
    }

    fn sum_heads(&self, own: &Tensor, _: usize, _: usize) -> Result<Tensor> {
        Ok(own.clone())
    }

    fn route(&self, _: &[u32]) -> Result<Routes> {
        unreachable!("models do not ask")
    }

    fn fetch(&self, _: &Tensor, _: &Routes) -> Result<Tensor> {
        unreachable!("models do not ask")
    }

    fn give_back(&self, _: &Tensor, _: &Routes) -> Result<Tensor> {
        unreachable!("models do not ask")
    }
}
