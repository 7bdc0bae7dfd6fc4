//! Rows of a layer that are read one after the other.

use std::ops::Range;

use gnarl_common::{Error, Result};
use rayon::prelude::*;

use super::file;
use crate::places::Places;

/// Rows copied per task.
const TASK_ROWS: usize = 256;

/// Rows of one type in the order of its nodes.
#[derive(Debug, Clone, Copy)]
pub struct InOrder<'a> {
    pub(super) places: &'a Places,
    /// None for rows in memory.
    pub(super) file: Option<&'a file::Rows>,
    pub(super) values: &'a [f32],
    pub(super) width: usize,
}

impl<'a> InOrder<'a> {
    /// The places of nodes.
    pub fn places(&self) -> &'a Places {
        self.places
    }

    /// Bytes of the rows, if they are in a file; else 0.
    pub fn file_bytes(&self) -> u64 {
        self.file.map_or(0, |_| size_of_val(self.values) as u64)
    }

    /// Copies the first columns of the rows of `nodes`, as many as make up `out`.
    ///
    /// # Errors
    /// If a node has no row.
    pub fn gather(&self, nodes: &[u32], out: &mut [f32]) -> Result<()> {
        let cols = out.len() / nodes.len().max(1);
        if cols == 0 {
            return Ok(());
        }
        let tasks = out.par_chunks_mut(TASK_ROWS * cols).zip(nodes.par_chunks(TASK_ROWS));
        tasks.try_for_each(|(out, nodes)| {
            for (out, &node) in out.chunks_exact_mut(cols).zip(nodes) {
                let place = self.places.place(node);
                let missing = || Error::invalid(format!("node {node} has no row to read"));
                let first = place.ok_or_else(missing)? * self.width;
                out.copy_from_slice(&self.values[first..first + cols]);
            }
            Ok(())
        })
    }

    /// Copies the first columns of the rows at some places, as many as make up `out`.
    ///
    /// # Panics
    /// If there are fewer rows or columns.
    pub fn copy(&self, places: Range<usize>, out: &mut [f32]) {
        let cols = out.len() / places.len().max(1);
        if cols == 0 {
            return;
        }
        let rows = &self.values[places.start * self.width..places.end * self.width];
        let tasks = out.par_chunks_mut(TASK_ROWS * cols);
        tasks.zip(rows.par_chunks(TASK_ROWS * self.width)).for_each(|(out, rows)| {
            for (out, row) in out.chunks_exact_mut(cols).zip(rows.chunks_exact(self.width)) {
                out.copy_from_slice(&row[..cols]);
            }
        });
    }

    /// Advises the system that the rows at some places are read soon.
    pub fn expect_reads(&self, places: Range<usize>) {
        if let Some(file) = self.file {
            file.expect_reads(places.start * self.width..places.end * self.width);
        }
    }

    /// Advises the system that the rows at some places are not read for a while.
    pub fn forget(&self, places: Range<usize>) {
        if let Some(file) = self.file {
            file.forget(places.start * self.width..places.end * self.width);
        }
    }
}
