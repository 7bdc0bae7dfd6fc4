//! The schedule over chunks: redistribution from rows to columns, message passing, and back, with
//! exchanges in flight.

use std::collections::VecDeque;

use gnarl_common::threads::even_share;
use gnarl_common::{Error, Kind, Result};
use gnarl_nn::Tensor;

use super::comm_thread::CommThread;
use super::layout::{Columns, Layout, Scores};
use super::matrix::{Matrix, Place, columns};
use super::messages::Messages;
use super::passes::{Direction, Part};
use super::wire::Wire;
use crate::step::tensor_parallel::Counted;

/// Most exchanges in flight.
const AHEAD: usize = 3;

/// Contents of a message to or from each rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parcel {
    /// Its column block of this rank's rows of a chunk.
    Rows { column_block: usize, row_block: usize },
    /// This rank's columns of its row block.
    Columns { row_block: usize },
}

/// The schedules over all chunks of a step. All ranks make the same ones.
pub(super) struct Schedule<'a> {
    layout: Layout,
    place: &'a Place,
    comm: CommThread<'a>,
    counted: &'a Counted,
    pending: VecDeque<Parcel>,
    /// The pass that computed rows belong to, and the scores in them.
    pub makes: (Direction, Scores),
    /// Bytes sent in forward and in backward passes.
    pub sent: [u64; 2],
}

/// Computes the messages of a row block, if there are any.
pub(super) type Work<'w> = dyn FnMut(usize, Option<&Matrix>) -> Result<Option<Tensor>> + 'w;

impl<'a> Schedule<'a> {
    pub fn new(
        layout: Layout,
        place: &'a Place,
        comm: CommThread<'a>,
        counted: &'a Counted,
    ) -> Self {
        let pending = VecDeque::new();
        let makes = (Direction::Forward, Scores::None);
        Self { layout, place, comm, counted, pending, makes, sent: [0; 2] }
    }

    /// Computes every row block by `work`; returns the resulting columns.
    ///
    /// # Errors
    /// Those of `work`, of files and of other ranks.
    pub fn begin(&mut self, work: &mut Work<'_>) -> Result<Option<Wire>> {
        let mut made = None;
        for row_block in 0..self.layout.row_blocks {
            self.work(row_block, None, work, &mut made)?;
            self.settle(AHEAD, None, &mut made)?;
        }
        self.settle(0, None, &mut made)?;
        Ok(made)
    }

    /// Passes messages over the columns `from`; `work` processes each received row block. Returns
    /// the received rows, and the columns of those computed from them.
    ///
    /// # Errors
    /// As [`Schedule::begin`].
    pub fn pass(
        &mut self,
        from: &Wire,
        messages: &Messages<'_>,
        work: &mut Work<'_>,
    ) -> Result<(Matrix, Option<Wire>)> {
        let layout = self.layout;
        if layout.ranks > 1 {
            self.counted.take(even_share(from.columns.split, layout.rank, layout.ranks).len());
        }
        let arriving = messages.arriving(from.columns);
        let mut rows = own_rows(&layout, self.place, arriving)?;
        let mut made = None;
        let column_blocks = layout.column_blocks(arriving);
        for column_block in 0..column_blocks {
            let part = messages.begin(&layout, from, column_block)?;
            for row_block in 0..layout.row_blocks {
                let direction = messages.direction;
                self.chunk(direction, part.as_ref(), (column_block, row_block), &mut rows)?;
                if column_block + 1 == column_blocks && row_block > 0 {
                    self.arrive(row_block - 1, &mut rows, &mut made)?;
                    self.work(row_block - 1, Some(&rows), work, &mut made)?;
                }
                self.settle(AHEAD, Some(&mut rows), &mut made)?;
            }
        }
        self.arrive(layout.row_blocks - 1, &mut rows, &mut made)?;
        self.work(layout.row_blocks - 1, Some(&rows), work, &mut made)?;
        self.settle(0, Some(&mut rows), &mut made)?;
        Ok((rows, made))
    }

    /// Aggregates the messages to a chunk, in a column block of own columns.
    fn chunk(
        &mut self,
        direction: Direction,
        part: &dyn Part,
        (column_block, row_block): (usize, usize),
        rows: &mut Matrix,
    ) -> Result<()> {
        let layout = self.layout;
        let own = layout.rank * (rows.column_blocks() / layout.ranks) + column_block;
        let width = rows.width(own);
        let mut parcel = Vec::with_capacity(layout.ranks);
        for rank in 0..layout.ranks {
            let range = layout.row_block(rank, row_block);
            let first = range.start;
            if rank == layout.rank {
                rows.fill(own, range, |out| part.rows(first, out))?;
                parcel.push(Vec::new());
            } else {
                let mut out = Tensor::scratch(range.len(), width);
                part.rows(first, out.data_mut());
                parcel.push(bytemuck::cast_slice(out.data()).to_vec());
            }
        }
        let what = Parcel::Rows { column_block, row_block };
        self.send("columns to rows", parcel, what, direction)
    }

    /// Runs `work` on a row block, and sends the result.
    fn work(
        &mut self,
        row_block: usize,
        rows: Option<&Matrix>,
        work: &mut Work<'_>,
        made: &mut Option<Wire>,
    ) -> Result<()> {
        let Some(values) = work(row_block, rows)? else { return Ok(()) };
        let layout = self.layout;
        let (direction, scores) = self.makes;
        let wired = Columns { split: values.cols() - scores.count(), scores };
        let column_blocks = layout.column_blocks(wired);
        let wire = match made {
            Some(wire) => wire,
            None => {
                let of = |column_block| layout.columns(wired, layout.rank, column_block);
                let column_blocks = (0..column_blocks).map(of).collect();
                let matrix = Matrix::new(self.place, 0..layout.nodes, column_blocks)?;
                made.insert(Wire { matrix, columns: wired })
            }
        };
        let mut parcel = vec![Vec::new(); layout.ranks];
        for (rank, bytes) in parcel.iter_mut().enumerate() {
            for column_block in 0..column_blocks {
                let part = columns(&values, &layout.columns(wired, rank, column_block));
                if rank == layout.rank {
                    let first = layout.row_block(rank, row_block).start;
                    wire.matrix.write(column_block, first, part.data())?;
                } else {
                    bytes.extend_from_slice(bytemuck::cast_slice(part.data()));
                }
            }
        }
        self.send("rows to columns", parcel, Parcel::Columns { row_block }, direction)
    }

    fn send(
        &mut self,
        stage: &'static str,
        parcel: Vec<Vec<u8>>,
        what: Parcel,
        pass: Direction,
    ) -> Result<()> {
        if self.layout.ranks == 1 {
            return Ok(());
        }
        self.sent[pass as usize] += parcel.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
        self.pending.push_back(what);
        self.comm.send(stage, parcel)
    }

    /// Waits until the rows of a block have arrived.
    fn arrive(
        &mut self,
        row_block: usize,
        rows: &mut Matrix,
        made: &mut Option<Wire>,
    ) -> Result<()> {
        let due = |parcel: &Parcel| matches!(parcel, Parcel::Rows { row_block: p, .. } if *p <= row_block);
        while let Some(last) = self.pending.iter().rposition(due) {
            let later = self.pending.len() - last - 1;
            self.settle(later, Some(rows), made)?;
        }
        Ok(())
    }

    /// Waits until at most `left` exchanges are in flight.
    fn settle(
        &mut self,
        left: usize,
        mut rows: Option<&mut Matrix>,
        made: &mut Option<Wire>,
    ) -> Result<()> {
        while self.pending.len() > left {
            let Some(parcel) = self.pending.pop_front() else { return Ok(()) };
            let came = self.comm.receive()?;
            match (parcel, rows.as_deref_mut(), made.as_mut()) {
                (Parcel::Rows { column_block, row_block }, Some(rows), _) => {
                    self.take_rows(&came, (column_block, row_block), rows)?;
                }
                (Parcel::Columns { row_block }, _, Some(wire)) => {
                    self.take_columns(&came, row_block, wire)?;
                }
                _ => return Err(Error::new(Kind::Rank, "exchange: unexpected message")),
            }
        }
        Ok(())
    }

    fn take_rows(
        &self,
        came: &[Vec<u8>],
        (column_block, row_block): (usize, usize),
        rows: &mut Matrix,
    ) -> Result<()> {
        let layout = &self.layout;
        let (range, column_blocks) =
            (layout.row_block(layout.rank, row_block), rows.column_blocks() / layout.ranks);
        for (rank, bytes) in came.iter().enumerate().filter(|(rank, _)| *rank != layout.rank) {
            let column_block = rank * column_blocks + column_block;
            let values = self.values(bytes, range.len() * rows.width(column_block), rank)?;
            rows.write(column_block, range.start, &values)?;
        }
        Ok(())
    }

    fn take_columns(&self, came: &[Vec<u8>], row_block: usize, wire: &mut Wire) -> Result<()> {
        let layout = &self.layout;
        for (rank, bytes) in came.iter().enumerate().filter(|(rank, _)| *rank != layout.rank) {
            let range = layout.row_block(rank, row_block);
            let values = self.values(bytes, range.len() * wire.matrix.values(), rank)?;
            let mut rest = &values[..];
            for column_block in 0..wire.matrix.column_blocks() {
                let (own, others) = rest.split_at(range.len() * wire.matrix.width(column_block));
                wire.matrix.write(column_block, range.start, own)?;
                rest = others;
            }
        }
        Ok(())
    }

    /// Decodes a rank's message, which must have `due` values.
    fn values(&self, bytes: &[u8], due: usize, rank: usize) -> Result<Vec<f32>> {
        let (values, []) = bytes.as_chunks() else {
            return Err(Error::new(Kind::Rank, format!("incomplete value from rank {rank}")));
        };
        if values.len() != due {
            let message = format!("expected {due} values from rank {rank}, found {}", values.len());
            return Err(Error::new(Kind::Rank, message));
        }
        Ok(values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}

/// A matrix of this rank's rows, by the column blocks of all ranks.
pub(super) fn own_rows(layout: &Layout, place: &Place, columns: Columns) -> Result<Matrix> {
    let column_blocks = layout.column_blocks(columns);
    let of = |rank| {
        (0..column_blocks).map(move |column_block| layout.columns(columns, rank, column_block))
    };
    Matrix::new(place, layout.rows(layout.rank), (0..layout.ranks).flat_map(of).collect())
}
