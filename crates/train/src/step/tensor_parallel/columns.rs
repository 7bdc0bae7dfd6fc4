//! All-to-all redistribution of rows and columns over a communicator.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::threads::even_share;
use gnarl_common::{Error, Kind, Result};
use gnarl_engine::Communicator;
use gnarl_nn::{Exchange, Routes, Tensor, heads_in};

use super::counted::Counted;
use super::packing;

/// Consecutive rows per rank, and feature slices whose widths differ by at most one.
pub(crate) struct Columns<'a> {
    comm: &'a dyn Communicator,
    /// First row of each rank, and the number of rows.
    bounds: Vec<usize>,
    counted: Arc<Counted>,
}

impl<'a> Columns<'a> {
    /// Even shares of the rows of `nodes` nodes.
    pub fn new(comm: &'a dyn Communicator, nodes: usize) -> Self {
        let ends = (0..comm.size()).map(|r| even_share(nodes, r, comm.size()).end);
        Self::over(comm, std::iter::once(0).chain(ends).collect(), Arc::default())
    }

    /// Node ranges that begin at `bounds`, up to the last one; exchanges are counted by
    /// `counted`.
    pub fn over(comm: &'a dyn Communicator, bounds: Vec<usize>, counted: Arc<Counted>) -> Self {
        Self { comm, bounds, counted }
    }

    /// The counters of exchanges.
    pub fn counted(&self) -> &Counted {
        &self.counted
    }

    /// Returns true for a single rank, which has all rows of any matrix.
    pub fn is_alone(&self) -> bool {
        self.comm.size() == 1
    }

    /// Number of rows of all ranks.
    fn total(&self) -> usize {
        self.bounds[self.comm.size()]
    }

    fn rows_of(&self, rank: usize) -> Range<usize> {
        self.bounds[rank]..self.bounds[rank + 1]
    }

    fn columns_of(&self, rank: usize, cols: usize) -> Range<usize> {
        even_share(cols, rank, self.comm.size())
    }

    /// Exchanges bytes with all ranks; returns those received from each.
    ///
    /// # Errors
    /// If a rank fails or does not take part.
    pub fn give(&self, stage: &str, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        self.counted.timed(|| self.carry(stage, outgoing))
    }

    /// As [`Columns::give`], on a thread beside computation: the time is not counted.
    ///
    /// # Errors
    /// As [`Columns::give`].
    pub fn carry(&self, stage: &str, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let others = outgoing.iter().enumerate().filter(|(r, _)| *r != self.comm.rank());
        self.counted.send(others.map(|(_, bytes)| bytes.len() as u64).sum());
        self.comm.all_to_all(stage, outgoing)
    }

    /// Sends `of(r)` to each rank `r`; returns the values received from each, of which there must
    /// be `wanted(r)`.
    fn exchange(
        &self,
        stage: &str,
        of: impl FnMut(usize) -> Vec<u8>,
        wanted: impl Fn(usize) -> usize,
    ) -> Result<Vec<Vec<u8>>> {
        let incoming = self.give(stage, (0..self.comm.size()).map(of).collect())?;
        for (from, bytes) in incoming.iter().enumerate() {
            let (found, wanted) = (bytes.len(), wanted(from) * size_of::<f32>());
            if found != wanted {
                let message =
                    format!("{stage}: expected {wanted} bytes from rank {from}, found {found}");
                return Err(Error::new(Kind::Rank, message));
            }
        }
        Ok(incoming)
    }
}

impl Exchange for Columns<'_> {
    fn rows(&self) -> Range<usize> {
        self.rows_of(self.comm.rank())
    }

    fn columns(&self, cols: usize) -> Range<usize> {
        self.columns_of(self.comm.rank(), cols)
    }

    fn split(&self, rows: &Tensor) -> Result<Tensor> {
        if self.is_alone() {
            return Ok(rows.clone());
        }
        let (own, cols) = (self.columns(rows.cols()).len(), rows.cols());
        self.counted.take(own);
        let of = |rank| packing::pack(rows, self.columns_of(rank, cols));
        let incoming =
            self.exchange("rows to columns", of, |from| self.rows_of(from).len() * own)?;
        // Ranks have their rows in order, so that their concatenation is all rows.
        let mut all = Tensor::scratch(self.total(), own);
        packing::write(all.data_mut(), &incoming);
        Ok(all)
    }

    fn gather(&self, columns: &Tensor, cols: usize) -> Result<Tensor> {
        if self.is_alone() {
            return Ok(columns.clone());
        }
        let (width, own) = (columns.cols(), self.rows());
        let of = |rank| {
            let rows = self.rows_of(rank);
            packing::bytes(&columns.data()[rows.start * width..rows.end * width])
        };
        let wanted = |from| own.len() * self.columns_of(from, cols).len();
        let incoming = self.exchange("columns to rows", of, wanted)?;
        let mut rows = Tensor::scratch(own.len(), cols);
        for (from, bytes) in incoming.iter().enumerate() {
            packing::place(&mut rows, self.columns_of(from, cols), bytes);
        }
        Ok(rows)
    }

    fn all_rows(&self, rows: &Tensor) -> Result<Tensor> {
        if self.is_alone() {
            return Ok(rows.clone());
        }
        let cols = rows.cols();
        let of = |_| packing::bytes(rows.data());
        let incoming = self.exchange("rows to all", of, |from| self.rows_of(from).len() * cols)?;
        let mut all = Tensor::scratch(self.total(), cols);
        packing::write(all.data_mut(), &incoming);
        Ok(all)
    }

    fn sum_rows(&self, all: &Tensor) -> Result<Tensor> {
        if self.is_alone() {
            return Ok(all.clone());
        }
        let (cols, own) = (all.cols(), self.rows());
        let of = |rank| {
            let rows = self.rows_of(rank);
            packing::bytes(&all.data()[rows.start * cols..rows.end * cols])
        };
        let incoming = self.exchange("sums of rows", of, |_| own.len() * cols)?;
        let mut rows = Tensor::zeros(own.len(), cols);
        // In the order of ranks, so that sums are the same in every run.
        for bytes in &incoming {
            packing::add(rows.data_mut(), bytes);
        }
        Ok(rows)
    }

    fn sum_heads(&self, own: &Tensor, cols: usize, heads: usize) -> Result<Tensor> {
        if self.is_alone() {
            return Ok(own.clone());
        }
        let width = cols / heads;
        let mine = heads_in(&self.columns(cols), width);
        // Columns of `own`, of the heads that the other rank has as well.
        let shared = |rank| {
            let other = heads_in(&self.columns_of(rank, cols), width);
            let start = other.start.clamp(mine.start, mine.end) - mine.start;
            start..other.end.clamp(mine.start, mine.end) - mine.start
        };
        let of = |rank| packing::pack(own, shared(rank));
        let wanted = |from| own.rows() * shared(from).len();
        let incoming = self.exchange("sums of heads", of, wanted)?;
        let mut sums = Tensor::zeros(own.rows(), own.cols());
        // In the order of ranks, so that sums are the same in every run, and on all ranks.
        for (from, bytes) in incoming.iter().enumerate() {
            packing::add_columns(&mut sums, shared(from), bytes);
        }
        Ok(sums)
    }

    fn route(&self, wanted: &[u32]) -> Result<Routes> {
        let from = |rank: usize| {
            let rows = self.rows_of(rank);
            let before = |end: usize| wanted.partition_point(|&node| (node as usize) < end);
            &wanted[before(rows.start)..before(rows.end)]
        };
        let all = (0..self.comm.size()).map(|r| bytemuck::cast_slice(from(r)).to_vec()).collect();
        let own = self.rows();
        let place = |bytes: &[u8; 4]| {
            let node = u32::from_le_bytes(*bytes) as usize;
            match own.contains(&node) {
                true => Ok((node - own.start) as u32),
                false => Err(Error::new(Kind::Rank, format!("row {node} belongs to another rank"))),
            }
        };
        let asked = self.give("wanted rows", all)?;
        let asked = asked.iter().map(|bytes| bytes.as_chunks().0.iter().map(place).collect());
        let asked = asked.collect::<Result<_>>()?;
        Ok(Routes { asked, wanted: (0..self.comm.size()).map(|r| from(r).len()).collect() })
    }

    fn fetch(&self, rows: &Tensor, routes: &Routes) -> Result<Tensor> {
        let cols = rows.cols();
        let of = |rank: usize| packing::pack_some(rows, &routes.asked[rank]);
        let incoming = self.exchange("requested rows", of, |r| routes.wanted[r] * cols)?;
        // Requested nodes ascend, and so do those of the ranks.
        let mut wanted = Tensor::scratch(routes.wanted.iter().sum(), cols);
        packing::write(wanted.data_mut(), &incoming);
        Ok(wanted)
    }

    fn give_back(&self, wanted: &Tensor, routes: &Routes) -> Result<Tensor> {
        let (cols, mut first) = (wanted.cols(), 0);
        let mut outgoing = Vec::with_capacity(routes.wanted.len());
        for &count in &routes.wanted {
            let values = &wanted.data()[first * cols..(first + count) * cols];
            outgoing.push(packing::bytes(values));
            first += count;
        }
        let of = |rank: usize| std::mem::take(&mut outgoing[rank]);
        let incoming = self.exchange("returned rows", of, |r| routes.asked[r].len() * cols)?;
        let mut rows = Tensor::zeros(self.rows().len(), cols);
        if cols == 0 {
            return Ok(rows);
        }
        // In the order of ranks, so that sums are the same in every run.
        for (bytes, asked) in incoming.iter().zip(&routes.asked) {
            let came = bytes.chunks_exact(cols * size_of::<f32>());
            for (&row, came) in asked.iter().zip(came) {
                let at = row as usize * cols;
                let sums = &mut rows.data_mut()[at..at + cols];
                for (sum, term) in sums.iter_mut().zip(came.as_chunks().0) {
                    *sum += f32::from_le_bytes(*term);
                }
            }
        }
        Ok(rows)
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
            local::run(ranks, Duration::from_secs(20), |comm| {
                let exchange = Columns::new(comm, nodes);
                let (own, columns) = (exchange.rows(), exchange.columns(cols));
                let rows = matrix(own.clone(), 0..cols);
                let slice = exchange.split(&rows)?;
                assert_eq!(slice.data(), matrix(0..nodes, columns.clone()).data());
                // All values but own rows of own columns, which stay.
                let sent = 4 * own.len() * (cols - columns.len());
                assert_eq!(exchange.counted().sent(), sent as u64);
                let taken = if ranks > 1 { columns.len() as u64 } else { 0 };
                assert_eq!(exchange.counted().exchanges().columns, taken);
                assert_eq!(exchange.counted().exchanges().nanos > 0, ranks > 1);
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

    /// Heads that several ranks have columns of are summed, at either end of a slice.
    #[test]
    fn shared_heads_are_summed_where_they_are() {
        for (ranks, cols, heads) in
            [(1, 6, 2), (2, 6, 3), (3, 8, 2), (4, 6, 3), (5, 3, 3), (7, 5, 1)]
        {
            local::run(ranks, Duration::from_secs(20), |comm| {
                let exchange = Columns::new(comm, 9);
                let of = |rank| heads_in(&exchange.columns_of(rank, cols), cols / heads);
                let own = of(comm.rank());
                let sums = exchange.sum_heads(&matrix(0..2, own.clone()), cols, heads)?;
                let sharing = |head: usize| (0..ranks).filter(|r| of(*r).contains(&head)).count();
                let sum = |row, head| sharing(head) as f32 * value(row, head);
                let expected = (0..2).flat_map(|row| own.clone().map(move |head| (row, head)));
                let expected: Vec<f32> = expected.map(|(row, head)| sum(row, head)).collect();
                assert_eq!((sums.shape(), sums.data()), ((2, own.len()), &expected[..]));
                let others = own.map(|head| sharing(head) as u64 - 1).sum::<u64>();
                assert_eq!(exchange.counted().sent(), 4 * 2 * others);
                Ok(())
            })
            .unwrap();
        }
    }

    #[test]
    fn rows_come_from_where_they_are_and_gradients_go_back() {
        // No rows of rank 2; rank 1 wants none.
        let wanted: [&[u32]; 3] = [&[0, 2, 6], &[], &[1, 2, 3, 5, 6]];
        local::run(3, Duration::from_secs(20), |comm| {
            let exchange = Columns::over(comm, vec![0, 3, 7, 7], Arc::default());
            let own = exchange.rows();
            let wanted = wanted[comm.rank()];
            let routes = exchange.route(wanted)?;
            let rows = exchange.fetch(&matrix(own.clone(), 0..2), &routes)?;
            let values = wanted.iter().flat_map(|&v| [0, 1].map(|c| value(v as usize, c)));
            assert_eq!(rows.data(), values.collect::<Vec<_>>());
            // A row comes back once per rank that has it.
            let back = exchange.give_back(&rows, &routes)?;
            let times = [1.0, 1.0, 2.0, 1.0, 0.0, 1.0, 2.0];
            let sums = own.flat_map(|v| [0, 1].map(|c| times[v] * value(v, c)));
            assert_eq!(back.data(), sums.collect::<Vec<_>>());
            // Ids, rows and gradients of rows that are elsewhere.
            let [ids, given, returned] = [[1, 2, 1], [0, 4, 0], [5, 0, 5]][comm.rank()];
            assert_eq!(exchange.counted().sent(), 4 * (ids + 2 * (given + returned)));
            Ok(())
        })
        .unwrap();
    }
}
