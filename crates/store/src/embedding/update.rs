//! Updates of rows by summed gradients, on all threads.

use gnarl_common::prefetch::row as prefetch;

use super::sum::Summed;
use crate::source::span;

/// The rows of a table from index `first` on.
pub(super) struct Touched<'a> {
    pub first: usize,
    pub values: &'a mut [f32],
    pub state: &'a mut [f32],
    pub steps: &'a mut [u32],
}

/// Rows per task.
const ROWS: usize = 64;
/// Distance in rows at which a row and its state are fetched into cache.
const AHEAD: usize = 2;

/// Updates the rows of `summed` at the positions in `order`, which ascend by row; all are in
/// `rows`.
pub(super) fn update_rows(
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
    for (i, &place) in order.iter().enumerate() {
        if let Some(&next) = order.get(i + AHEAD) {
            let row = row_of(next) - rows.first;
            prefetch(&rows.values[span(row, width)]);
            prefetch(&rows.state[span(row, size)]);
            prefetch(&rows.steps[row..=row]);
            prefetch(&summed.grads[span(next as usize, width)]);
        }
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
