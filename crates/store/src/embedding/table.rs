//! The embedding table and its updates.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{BufMut, Error, Home, Result};
use hashbrown::HashMap;
use rayon::prelude::*;

use super::SparseOptimizer;
use super::ids::{Ids, too_many};
use crate::RowSource;
use crate::source::{check_len, span};

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
}

/// Gradients summed by row, for the rows of one update, in the order of first occurrence.
#[derive(Debug, Default)]
pub struct Summed {
    rows: Vec<u32>,
    grads: Vec<f32>,
}

impl Summed {
    /// One row of gradients per updated row.
    pub fn grads(&self) -> &[f32] {
        &self.grads
    }

    /// The gradients for writing, to divide or clip them.
    pub fn grads_mut(&mut self) -> &mut [f32] {
        &mut self.grads
    }
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
        for rows in values.chunks_mut(INITIAL * width) {
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
        Ok(Self { ids, width, values, state, steps, optimizer })
    }

    /// Dataset ids of the rows.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// All rows, in the order of [`Embedding::ids`].
    pub fn values(&self) -> &BufMut<f32> {
        &self.values
    }

    /// All rows for writing.
    pub fn values_mut(&mut self) -> &mut BufMut<f32> {
        &mut self.values
    }

    /// The rows; their optimizer's state is dropped.
    pub fn into_values(self) -> BufMut<f32> {
        self.values
    }

    /// The optimizer state, and the number of updates of each row.
    pub fn state(&self) -> (&BufMut<f32>, &BufMut<u32>) {
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
        let (width, size, rows) = (self.width, self.state_width(), first..first + steps.len());
        self.values[rows.start * width..rows.end * width].copy_from_slice(values);
        self.state[rows.start * size..rows.end * size].copy_from_slice(state);
        self.steps[rows].copy_from_slice(steps);
    }

    /// Advises the system that the rows of these ids, which ascend, are soon read and updated.
    pub fn expect(&self, ids: std::ops::Range<u64>) {
        let (first, end) = (self.ids.below(ids.start), self.ids.below(ids.end));
        let of = |size: usize| first * size..end * size;
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
    /// If an id has no row here or lengths disagree; no row has changed then.
    pub fn update(&mut self, ids: &[u64], grads: &[f32], lr: f32) -> Result<()> {
        let summed = self.sum(ids, grads)?;
        self.apply(&summed, lr);
        Ok(())
    }

    /// The second half of [`Embedding::update`]: updates each row of `summed`, on the rayon pool
    /// this is called from. The rows do not depend on its size.
    pub fn apply(&mut self, summed: &Summed, lr: f32) {
        let (width, size) = (self.width, self.state_width());
        let mut order: Vec<u32> = (0..summed.rows.len() as u32).collect();
        order.sort_unstable_by_key(|&place| summed.rows[place as usize]);
        let all = Touched {
            first: 0,
            values: &mut self.values,
            state: &mut self.state,
            steps: &mut self.steps,
        };
        let optimizer = self.optimizer.as_ref();
        update_rows(all, &order, summed, (width, size), &|step, row, state, grad| {
            optimizer.step(step, row, state, grad, lr);
        });
    }

    /// The first half of [`Embedding::update`]: sums the gradients of each row.
    ///
    /// # Errors
    /// If an id has no row here or lengths disagree.
    pub fn sum(&self, ids: &[u64], grads: &[f32]) -> Result<Summed> {
        check_len(grads, ids.len(), self.width)?;
        let (mut summed, mut places) = (Summed::default(), HashMap::new());
        for (&id, grad) in ids.iter().zip(grads.chunks_exact(self.width)) {
            let row = self.row(id)?;
            let place = *places.entry(row).or_insert(summed.rows.len());
            if place == summed.rows.len() {
                summed.rows.push(row);
                summed.grads.extend_from_slice(grad);
                continue;
            }
            let sums = &mut summed.grads[span(place, self.width)];
            sums.iter_mut().zip(grad).for_each(|(sum, g)| *sum += g);
        }
        Ok(summed)
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
        // On all threads: rows of a file are read many at a time.
        let rows = out.par_chunks_exact_mut(self.width).zip(ids).with_min_len(FETCHED);
        rows.try_for_each(|(out, &id)| {
            out.copy_from_slice(&self.values[span(self.row(id)? as usize, self.width)]);
            Ok::<_, Error>(())
        })?;
        Ok(())
    }
}

/// The rows of a table from index `first` on.
struct Touched<'a> {
    first: usize,
    values: &'a mut [f32],
    state: &'a mut [f32],
    steps: &'a mut [u32],
}

/// Rows per task.
const ROWS: usize = 64;
/// Rows fetched per task at least.
const FETCHED: usize = 128;
/// Rows initialized together.
const INITIAL: usize = 1 << 16;

/// Updates the rows of `summed` at the positions in `order`, which ascend by row; all are in
/// `rows`.
fn update_rows(
    rows: Touched<'_>,
    order: &[u32],
    summed: &Summed,
    (width, size): (usize, usize),
    step: &(impl Fn(u32, &mut [f32], &mut [f32], &[f32]) + Sync),
) {
    let row_of = |place: u32| summed.rows[place as usize] as usize;
    if order.len() > ROWS {
        let (low, high) = order.split_at(order.len() / 2);
        let middle = row_of(high[0]);
        let here = middle - rows.first;
        let (values, more_values) = rows.values.split_at_mut(here * width);
        let (state, more_state) = rows.state.split_at_mut(here * size);
        let (steps, more_steps) = rows.steps.split_at_mut(here);
        let below = Touched { first: rows.first, values, state, steps };
        let above =
            Touched { first: middle, values: more_values, state: more_state, steps: more_steps };
        rayon::join(
            || update_rows(below, low, summed, (width, size), step),
            || update_rows(above, high, summed, (width, size), step),
        );
        return;
    }
    for &place in order {
        let row = row_of(place) - rows.first;
        rows.steps[row] = rows.steps[row].saturating_add(1);
        step(
            rows.steps[row],
            &mut rows.values[span(row, width)],
            &mut rows.state[span(row, size)],
            &summed.grads[span(place as usize, width)],
        );
    }
}
