//! Rows of a file that are held in memory for a while.

use std::ops::Range;

use gnarl_common::{BufMut, Result};

use crate::source::span;

/// Consecutive rows of a table in files, with their state, in memory.
///
/// Rows that every batch updates for a while would be written back again and again where they are mapped, as memory is short;
/// here they are read and written once.
pub(super) struct Held {
    /// Rows of the table.
    pub rows: Range<usize>,
    pub values: Vec<f32>,
    pub state: Vec<f32>,
    pub steps: Vec<u32>,
}

/// The arrays of a table.
pub(super) type Arrays<'a> = (&'a mut BufMut<f32>, &'a mut BufMut<f32>, &'a mut BufMut<u32>);

impl Held {
    /// Reads `rows` of `width` values with `size` values of state.
    pub fn read(
        rows: Range<usize>,
        (values, state, steps): &Arrays<'_>,
        (width, size): (usize, usize),
    ) -> Result<Self> {
        let mut held = Self {
            values: vec![0.0; rows.len() * width],
            state: vec![0.0; rows.len() * size],
            steps: vec![0; rows.len()],
            rows,
        };
        let first = held.rows.start;
        values.read_at(first * width, &mut held.values)?;
        state.read_at(first * size, &mut held.state)?;
        steps.read_at(first, &mut held.steps)?;
        Ok(held)
    }

    /// Writes the rows back.
    pub fn write(
        &self,
        (values, state, steps): Arrays<'_>,
        (width, size): (usize, usize),
    ) -> Result<()> {
        let first = self.rows.start;
        values.write_at(first * width, &self.values)?;
        state.write_at(first * size, &self.state)?;
        steps.write_at(first, &self.steps)
    }

    /// The values of a row, if it is held.
    pub fn row(&self, row: usize, width: usize) -> Option<&[f32]> {
        self.rows.contains(&row).then(|| &self.values[span(row - self.rows.start, width)])
    }
}
