//! Gradients summed by row, on all threads.

use gnarl_common::{Error, Result};
use rayon::prelude::*;

/// Rows summed per task.
const ROWS: usize = 64;

/// Gradients summed by row, for the rows of one update, in the order of first occurrence.
#[derive(Debug, Default)]
pub struct Summed {
    pub(super) rows: Vec<u32>,
    pub(super) grads: Vec<f32>,
    /// Positions of the rows, ascending by row.
    pub(super) order: Vec<u32>,
}

/// The gradients of a row: where they begin among all that are sorted by row, and the first of them.
#[derive(Clone, Copy)]
struct Group {
    begin: usize,
    first: u32,
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

    /// Sums `grad(i)`, of `width` values, of all `i` with the same row, in their order.
    ///
    /// # Errors
    /// If there are more gradients than 32 bits count.
    pub(super) fn of<'g>(
        rows: &[u32],
        width: usize,
        grad: impl Fn(usize) -> &'g [f32] + Sync,
    ) -> Result<Self> {
        let count = u32::try_from(rows.len()).map_err(|_| {
            Error::invalid(format!("{} gradients of embeddings in one step", rows.len()))
                .hint("train by smaller batches")
        })?;
        let mut entries: Vec<(u32, u32)> = rows.iter().copied().zip(0..count).collect();
        entries.par_sort_unstable();
        let begins = |&i: &usize| i == 0 || entries[i - 1].0 != entries[i].0;
        let groups = (0..entries.len()).filter(begins);
        let groups: Vec<Group> =
            groups.map(|begin| Group { begin, first: entries[begin].1 }).collect();
        let mut by_first: Vec<u32> = (0..groups.len() as u32).collect();
        by_first.par_sort_unstable_by_key(|&group| groups[group as usize].first);
        let mut order = vec![0; groups.len()];
        for (place, &group) in by_first.iter().enumerate() {
            order[group as usize] = place as u32;
        }
        let mut grads = vec![0.0; groups.len() * width];
        let chunks = grads.par_chunks_mut(ROWS * width).zip(by_first.par_chunks(ROWS));
        chunks.for_each(|(sums, some)| {
            for (sum, &group) in sums.chunks_exact_mut(width).zip(some) {
                let Group { begin, first } = groups[group as usize];
                sum.copy_from_slice(grad(first as usize));
                let row = entries[begin].0;
                for &(_, i) in entries[begin + 1..].iter().take_while(|entry| entry.0 == row) {
                    let grad = grad(i as usize);
                    assert_eq!(grad.len(), width, "values of a gradient");
                    sum.iter_mut().zip(grad).for_each(|(sum, g)| *sum += g);
                }
            }
        });
        let rows = by_first.iter().map(|&group| entries[groups[group as usize].begin].0).collect();
        Ok(Self { rows, grads, order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_by_row_in_the_order_of_first_occurrence() {
        let rows: Vec<u32> = (0..1000u32).map(|i| 7 * (i % 301) % 97 + i / 700).collect();
        let grads: Vec<f32> = (0..3000).map(|i| (i % 83) as f32 / 8.0).collect();
        let found = Summed::of(&rows, 3, |i| &grads[3 * i..3 * i + 3]).unwrap();
        let mut expected: Vec<(u32, [f32; 3])> = Vec::new();
        for (i, &row) in rows.iter().enumerate() {
            let place = expected.iter().position(|(other, _)| *other == row);
            let place = place.unwrap_or_else(|| {
                expected.push((row, [0.0; 3]));
                expected.len() - 1
            });
            let sum = &mut expected[place].1;
            sum.iter_mut().zip(&grads[3 * i..]).for_each(|(sum, g)| *sum += g);
        }
        assert_eq!(found.rows, expected.iter().map(|(row, _)| *row).collect::<Vec<_>>());
        assert_eq!(found.grads, expected.iter().flat_map(|(_, sum)| *sum).collect::<Vec<_>>());
        let by_row = found.order.windows(2);
        let row = |place: u32| found.rows[place as usize];
        assert!(by_row.into_iter().all(|pair| row(pair[0]) < row(pair[1])));
        assert_eq!(found.order.len(), expected.len());
    }

    #[test]
    fn no_gradients_are_no_rows() {
        let none = Summed::of(&[], 4, |_| &[]).unwrap();
        assert!(none.rows.is_empty() && none.grads.is_empty() && none.order.is_empty());
    }
}
