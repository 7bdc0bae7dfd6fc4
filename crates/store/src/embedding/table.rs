//! The embedding table and its updates.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::prefetch::row as prefetch;
use gnarl_common::rng::Key;
use gnarl_common::{BufMut, Error, Home, Result};
use rayon::prelude::*;

use super::SparseOptimizer;
use super::held::Held;
use super::ids::{Ids, Nodes, too_many};
use super::sum::Summed;
use super::update::{Touched, update_rows};
use crate::RowSource;
use crate::source::{check_len, span};

/// Rows fetched per task.
const FETCHED: usize = 128;
/// Distance in rows at which rows in memory are fetched into cache.
const AHEAD: usize = 4;
/// Rows initialized together.
const INITIAL: usize = 1 << 16;

/// An embedding table, or the rows of it that one part owns.
pub struct Embedding {
    ids: Ids,
    width: usize,
    /// `rows × width`.
    values: BufMut<f32>,
    /// `rows × state length`.
    state: BufMut<f32>,
    /// Number of updates of each row.
    steps: BufMut<u32>,
    optimizer: Arc<dyn SparseOptimizer>,
    /// Rows of the arrays that are held in memory, ascending.
    held: Vec<Held>,
}

impl Embedding {
    /// Embeddings of `width` values for the dataset ids `ids`, uniform in `[-bound, bound)`.
    ///
    /// A value is a function of `key`, its row's id and its column, so that a part starts with the
    /// rows of the whole table.
    ///
    /// # Errors
    /// If an id repeats, `width` is 0, `bound` is negative, or there are more rows than 32 bits
    /// count.
    pub fn new(
        ids: Vec<u64>,
        width: usize,
        bound: f32,
        key: Key,
        optimizer: Arc<dyn SparseOptimizer>,
    ) -> Result<Self> {
        Self::in_home(Ids::listed(ids)?, (width, bound, key), optimizer, &Home::Memory)
    }

    /// As [`Embedding::new`], with rows and their state in `home`.
    ///
    /// # Errors
    /// As [`Embedding::new`], and if files cannot be made.
    pub fn in_home(
        ids: Ids,
        (width, bound, key): (usize, f32, Key),
        optimizer: Arc<dyn SparseOptimizer>,
        home: &Home,
    ) -> Result<Self> {
        if width == 0 {
            return Err(Error::usage("invalid embedding width '0': expected at least one value"));
        }
        super::at_least_0("bound of initial embeddings", bound)?;
        let rows = ids.len();
        if u32::try_from(rows).is_err() {
            return Err(too_many(rows));
        }
        let mut values = BufMut::<f32>::zeros(rows * width, home)?;
        let mut left = ids.iter();
        // Zeros are there without being written, in files too.
        let drawn = if bound > 0.0 { &mut values[..] } else { &mut [] };
        for rows in drawn.chunks_mut(INITIAL * width) {
            let ids: Vec<u64> = left.by_ref().take(rows.len() / width).collect();
            rows.par_chunks_exact_mut(width).zip(&ids).for_each(|(row, &id)| {
                let key = key.with(id);
                for (column, value) in row.iter_mut().enumerate() {
                    *value = (2.0 * key.unit(column as u64) - 1.0) as f32 * bound;
                }
            });
        }
        drop(left);
        let state = BufMut::zeros(rows * optimizer.state_len(width), home)?;
        let steps = BufMut::zeros(rows, home)?;
        Ok(Self { ids, width, values, state, steps, optimizer, held: Vec::new() })
    }

    /// Dataset ids of the rows.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// All rows, in the order of [`Embedding::ids`].
    ///
    /// # Panics
    /// If rows are held, see [`Embedding::hold`].
    pub fn values(&self) -> &BufMut<f32> {
        self.assert_released();
        &self.values
    }

    /// All rows for writing.
    ///
    /// # Panics
    /// If rows are held.
    pub fn values_mut(&mut self) -> &mut BufMut<f32> {
        self.assert_released();
        &mut self.values
    }

    /// The rows; their optimizer's state is dropped.
    ///
    /// # Panics
    /// If rows are held.
    pub fn into_values(self) -> BufMut<f32> {
        self.assert_released();
        self.values
    }

    /// The optimizer state, and the number of updates of each row.
    ///
    /// # Panics
    /// If rows are held.
    pub fn state(&self) -> (&BufMut<f32>, &BufMut<u32>) {
        self.assert_released();
        (&self.state, &self.steps)
    }

    /// Number of optimizer state values per row.
    pub fn state_width(&self) -> usize {
        self.optimizer.state_len(self.width)
    }

    /// Restores rows, and the state from [`Embedding::state`].
    ///
    /// # Errors
    /// If lengths are not those of this table; nothing has changed then.
    pub fn restore(&mut self, values: &[f32], state: &[f32], steps: &[u32]) -> Result<()> {
        let found = (values.len(), state.len(), steps.len());
        let own = (self.values.len(), self.state.len(), self.steps.len());
        if found != own {
            return Err(Error::invalid(format!(
                "expected {own:?} values, optimizer values and steps; found {found:?}"
            ))
            .hint("the state belongs to a table of another size or optimizer"));
        }
        self.values.copy_from_slice(values);
        self.state.copy_from_slice(state);
        self.steps.copy_from_slice(steps);
        Ok(())
    }

    /// Restores the rows from index `first` on, as [`Embedding::restore`].
    ///
    /// # Panics
    /// If there are not so many rows, or lengths disagree.
    pub fn restore_some(&mut self, first: usize, values: &[f32], state: &[f32], steps: &[u32]) {
        self.assert_released();
        let width = self.width;
        let size = self.state_width();
        let rows = first..first + steps.len();
        self.values[rows.start * width..rows.end * width].copy_from_slice(values);
        self.state[rows.start * size..rows.end * size].copy_from_slice(state);
        self.steps[rows].copy_from_slice(steps);
    }

    /// Holds the rows of `nodes` in memory, if the table is in files, until other ones are held or none. Rows that were held
    /// before are written back. Any two of `nodes` are equal or have none in common; those whose rows are not consecutive in
    /// this table are left where they are.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn hold(&mut self, nodes: &[Nodes]) -> Result<()> {
        if !self.values.is_mapped() {
            return Ok(());
        }
        let mut wanted: Vec<Range<usize>> =
            nodes.iter().map(|nodes| self.ids.rows_of(nodes)).collect();
        wanted.retain(|rows| !rows.is_empty());
        wanted.sort_by_key(|rows| rows.start);
        wanted.dedup();
        let sizes = (self.width, self.state_width());
        let (kept, released): (Vec<Held>, Vec<Held>) =
            self.held.drain(..).partition(|held| wanted.contains(&held.rows));
        self.held = kept;
        for held in released {
            held.write((&mut self.values, &mut self.state, &mut self.steps), sizes)?;
        }
        for rows in wanted {
            if !self.held.iter().any(|held| held.rows == rows) {
                let arrays = (&mut self.values, &mut self.state, &mut self.steps);
                self.held.push(Held::read(rows, &arrays, sizes)?);
            }
        }
        self.held.sort_by_key(|held| held.rows.start);
        Ok(())
    }

    /// Number of rows that are held in memory.
    pub fn num_held(&self) -> usize {
        self.held.iter().map(|held| held.rows.len()).sum()
    }

    fn assert_released(&self) {
        assert!(self.held.is_empty(), "rows that are held are newer than those of the table");
    }

    /// Advises the system that the rows of `nodes` are soon read and updated.
    pub fn expect(&self, nodes: &Nodes) {
        let rows = self.ids.rows_of(nodes);
        let of = |size: usize| rows.start * size..rows.end * size;
        self.values.expect(of(self.width));
        self.state.expect(of(self.state_width()));
    }

    /// Updates the rows of `ids` from their gradients, `ids.len()` × `width` values, with learning
    /// rate `lr`. The gradients of an id that repeats are summed in their order, then its row is
    /// updated once.
    ///
    /// One call is one step: the gradients of all ranks are joined first, in the order of ranks.
    /// Then the rows equal those of one rank with the whole batch.
    ///
    /// # Errors
    /// If an id has no row here, lengths disagree, or there are more gradients than 32 bits count; no row has changed then.
    pub fn update(&mut self, ids: &[u64], grads: &[f32], lr: f32) -> Result<()> {
        let summed = self.sum(ids, grads)?;
        self.apply(&summed, lr);
        Ok(())
    }

    /// The second half of [`Embedding::update`]: updates each row of `summed`, on the rayon pool
    /// this is called from. The rows do not depend on its size.
    pub fn apply(&mut self, summed: &Summed, lr: f32) {
        let width = self.width;
        let size = self.state_width();
        let optimizer = self.optimizer.as_ref();
        let step = |step, row: &mut [f32], state: &mut [f32], grad: &[f32]| {
            optimizer.step(step, row, state, grad, lr);
        };
        let mut left = &summed.order[..];
        for held in &mut self.held {
            let below =
                |end: usize| left.partition_point(|&p| (summed.rows[p as usize] as usize) < end);
            let (first, end) = (below(held.rows.start), below(held.rows.end));
            let rows = Touched {
                first: held.rows.start,
                values: &mut held.values,
                state: &mut held.state,
                steps: &mut held.steps,
            };
            update_rows(rows, &left[first..end], summed, (width, size), &step);
            let (values, state, steps) = (&mut *self.values, &mut *self.state, &mut *self.steps);
            let rows = Touched { first: 0, values, state, steps };
            update_rows(rows, &left[..first], summed, (width, size), &step);
            left = &left[end..];
        }
        let (values, state, steps) = (&mut *self.values, &mut *self.state, &mut *self.steps);
        update_rows(Touched { first: 0, values, state, steps }, left, summed, (width, size), &step);
    }

    /// The first half of [`Embedding::update`]: sums the gradients of each row.
    ///
    /// # Errors
    /// If an id has no row here, lengths disagree, or there are more gradients than 32 bits count.
    pub fn sum(&self, ids: &[u64], grads: &[f32]) -> Result<Summed> {
        check_len(grads, ids.len(), self.width)?;
        self.sum_of(ids.par_iter().copied(), |i| &grads[span(i, self.width)])
    }

    /// As [`Embedding::sum`], of the gradients `grad(i)` of each id, on the rayon pool this is called from.
    ///
    /// # Errors
    /// If an id has no row here, or there are more gradients than 32 bits count.
    ///
    /// # Panics
    /// If a gradient has another length than a row.
    pub fn sum_of<'g>(
        &self,
        ids: impl IndexedParallelIterator<Item = u64>,
        grad: impl Fn(usize) -> &'g [f32] + Sync,
    ) -> Result<Summed> {
        let rows = ids.with_min_len(FETCHED).map(|id| self.row(id)).collect::<Result<Vec<_>>>()?;
        Summed::of(&rows, self.width, grad)
    }

    /// The rows in memory that have a row, if any have.
    fn holding(&self, row: usize) -> Option<&Held> {
        let after = self.held.partition_point(|held| held.rows.start <= row);
        self.held[..after].last().filter(|held| held.rows.contains(&row))
    }

    /// Begins to read those of `rows` that are in files, with their state: an update follows.
    fn expect_rows(&self, rows: &[usize]) {
        if !self.values.is_mapped() {
            return;
        }
        let away = |row: &&usize| self.holding(**row).is_none();
        let ranges = |size: usize| rows.iter().filter(away).map(move |&row| span(row, size));
        self.values.expect_now(ranges(self.width));
        self.state.expect_now(ranges(self.state_width()));
    }

    fn row(&self, id: u64) -> Result<u32> {
        self.ids.row(id).map(|row| row as u32).ok_or_else(|| {
            Error::invalid(format!("node {id} has no embedding here")).hint(
                "rows are fetched from the part that owns the node, and gradients pushed there",
            )
        })
    }
}

impl RowSource for Embedding {
    fn width(&self) -> usize {
        self.width
    }

    fn fetch(&self, ids: &[u64], out: &mut [f32]) -> Result<()> {
        check_len(out, ids.len(), self.width)?;
        let some = out.par_chunks_mut(FETCHED * self.width).zip(ids.par_chunks(FETCHED));
        some.try_for_each(|(out, ids)| {
            let rows = ids.iter().map(|&id| self.row(id).map(|row| row as usize));
            let rows = rows.collect::<Result<Vec<_>>>()?;
            self.expect_rows(&rows);
            for (i, (out, &row)) in out.chunks_exact_mut(self.width).zip(&rows).enumerate() {
                if let Some(&next) = rows.get(i + AHEAD).filter(|_| !self.values.is_mapped()) {
                    prefetch(&self.values[span(next, self.width)]);
                }
                let held = self.holding(row).and_then(|held| held.row(row, self.width));
                out.copy_from_slice(held.unwrap_or_else(|| &self.values[span(row, self.width)]));
            }
            Ok::<_, Error>(())
        })?;
        Ok(())
    }
}
