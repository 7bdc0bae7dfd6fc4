//! Matrices over many nodes, stored by column blocks: in memory, or on disk where they would not
//! fit.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use gnarl_common::{Result, ResultExt};
use gnarl_nn::Tensor;
use rayon::prelude::*;

/// Least rows per task that copies them.
const ROWS: usize = 512;
/// Values per task that copies them.
const VALUES: usize = 1 << 16;

/// Storage of matrices.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Memory,
    /// Unnamed files in this folder, which vanish with the process.
    Disk(PathBuf),
}

/// Some columns of some adjacent rows.
pub(super) struct Matrix {
    rows: Range<usize>,
    /// The columns of each column block. Columns that several have are sums of what they have.
    blocks: Vec<Vec<Range<usize>>>,
    /// Number of values of a row in each.
    widths: Vec<usize>,
    /// Number of all columns.
    cols: usize,
    store: Store,
}

enum Store {
    /// One tensor per column block.
    Memory(Vec<Tensor>),
    /// Column blocks one after the other, each row by row.
    Disk { file: Mutex<File>, dir: PathBuf },
}

impl Matrix {
    /// The `rows` of column blocks with these columns.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn new(place: &Place, rows: Range<usize>, blocks: Vec<Vec<Range<usize>>>) -> Result<Self> {
        let width = |of: &Vec<Range<usize>>| of.iter().map(Range::len).sum();
        let widths: Vec<usize> = blocks.iter().map(width).collect();
        let cols = blocks.iter().flatten().map(|range| range.end).max().unwrap_or(0);
        let store = match place {
            Place::Memory => Store::Memory(
                widths.iter().map(|&cols| Tensor::scratch(rows.len(), cols)).collect(),
            ),
            Place::Disk(dir) => {
                let file = tempfile::tempfile_in(dir).at(dir)?;
                let bytes = rows.len() * widths.iter().sum::<usize>() * size_of::<f32>();
                file.set_len(bytes as u64).at(dir)?;
                Store::Disk { file: Mutex::new(file), dir: dir.clone() }
            }
        };
        Ok(Self { rows, blocks, widths, cols, store })
    }

    /// Number of columns of all blocks.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of values of a row in all blocks.
    pub fn values(&self) -> usize {
        self.widths.iter().sum()
    }

    /// Number of column blocks.
    pub fn column_blocks(&self) -> usize {
        self.widths.len()
    }

    /// Number of columns of a block.
    pub fn width(&self, column_block: usize) -> usize {
        self.widths[column_block]
    }

    /// Writes `rows` of a column block by `fill`.
    pub fn fill(
        &mut self,
        column_block: usize,
        rows: Range<usize>,
        fill: impl FnOnce(&mut [f32]),
    ) -> Result<()> {
        let (at, width) = (rows.start - self.rows.start, self.widths[column_block]);
        if let Store::Memory(column_blocks) = &mut self.store {
            fill(
                &mut column_blocks[column_block].data_mut()[at * width..(at + rows.len()) * width],
            );
            return Ok(());
        }
        let mut values = Tensor::scratch(rows.len(), width);
        fill(values.data_mut());
        self.write(column_block, rows.start, values.data())
    }

    /// Writes rows of a column block, from `first` on.
    pub fn write(&mut self, column_block: usize, first: usize, values: &[f32]) -> Result<()> {
        let start = self.start(column_block, first);
        let (at, width) = (first - self.rows.start, self.widths[column_block]);
        match &mut self.store {
            Store::Memory(column_blocks) => {
                let own = &mut column_blocks[column_block].data_mut()[at * width..];
                copy(&mut own[..values.len()], values);
                Ok(())
            }
            Store::Disk { file, dir } => {
                let (file, dir) = (file.get_mut().unwrap_or_else(PoisonError::into_inner), &*dir);
                file.seek(SeekFrom::Start(start)).at(dir)?;
                file.write_all(bytemuck::cast_slice(values)).at(dir)
            }
        }
    }

    /// Reads a whole column block.
    pub fn column_block(&self, column_block: usize) -> Result<Tensor> {
        if let Store::Memory(column_blocks) = &self.store {
            return Ok(column_blocks[column_block].clone());
        }
        let mut values = Tensor::scratch(self.rows.len(), self.widths[column_block]);
        self.read(column_block, self.rows.start, values.data_mut())?;
        Ok(values)
    }

    /// Reads all columns of `rows`.
    pub fn row_block(&self, rows: Range<usize>) -> Result<Tensor> {
        let cols = self.cols();
        if let [one] = &self.blocks[..]
            && are_all(one, cols)
        {
            let mut all = Tensor::scratch(rows.len(), cols);
            self.read(0, rows.start, all.data_mut())?;
            return Ok(all);
        }
        let overlap = self.values() > cols;
        let mut all = match overlap {
            true => Tensor::zeros(rows.len(), cols),
            false => Tensor::scratch(rows.len(), cols),
        };
        for (column_block, ranges) in self.blocks.iter().enumerate() {
            let width = self.widths[column_block];
            if width == 0 {
                continue;
            }
            let mut part = Tensor::scratch(rows.len(), width);
            self.read(column_block, rows.start, part.data_mut())?;
            let all = all.data_mut().par_chunks_exact_mut(cols);
            let rows = all.zip(part.data().par_chunks_exact(width));
            rows.with_min_len(ROWS).for_each(|(all, mut part)| {
                for range in ranges {
                    let (own, rest) = part.split_at(range.len());
                    let all = &mut all[range.clone()];
                    match overlap {
                        true => all.iter_mut().zip(own).for_each(|(all, part)| *all += part),
                        false => all.copy_from_slice(own),
                    }
                    part = rest;
                }
            });
        }
        Ok(all)
    }

    /// Writes all columns of rows from `first` on.
    pub fn write_piece(&mut self, first: usize, values: &Tensor) -> Result<()> {
        for column_block in 0..self.column_blocks() {
            let part = columns(values, &self.blocks[column_block]);
            self.write(column_block, first, part.data())?;
        }
        Ok(())
    }

    /// Reads rows of a column block, from `first` on.
    fn read(&self, column_block: usize, first: usize, out: &mut [f32]) -> Result<()> {
        let (at, width) = (first - self.rows.start, self.widths[column_block]);
        match &self.store {
            Store::Memory(column_blocks) => {
                copy(out, &column_blocks[column_block].data()[at * width..]);
                Ok(())
            }
            Store::Disk { file, dir } => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.seek(SeekFrom::Start(self.start(column_block, first))).at(dir)?;
                file.read_exact(bytemuck::cast_slice_mut(out)).at(dir)
            }
        }
    }

    /// File offset of a row of a column block.
    fn start(&self, column_block: usize, row: usize) -> u64 {
        let before: usize = self.widths[..column_block].iter().sum();
        let values = before * self.rows.len() + (row - self.rows.start) * self.widths[column_block];
        (values * size_of::<f32>()) as u64
    }
}

/// Copies the first of `values` to `out`, on all threads.
pub(super) fn copy(out: &mut [f32], values: &[f32]) {
    let values = values[..out.len()].par_chunks(VALUES);
    out.par_chunks_mut(VALUES).zip(values).for_each(|(out, values)| out.copy_from_slice(values));
}

/// Returns whether `ranges`, one behind the other, are so many columns.
fn are_all(ranges: &[Range<usize>], cols: usize) -> bool {
    let mut end = 0;
    for range in ranges {
        if range.start != end {
            return false;
        }
        end = range.end;
    }
    end == cols
}

/// Some columns of all rows of `values`; not copied if they are all.
pub(super) fn columns(values: &Tensor, ranges: &[Range<usize>]) -> Tensor {
    if are_all(ranges, values.cols()) {
        return values.clone();
    }
    let width = ranges.iter().map(Range::len).sum();
    let mut part = Tensor::scratch(values.rows(), width);
    if width > 0 {
        let rows = part.data_mut().par_chunks_exact_mut(width);
        let rows = rows.zip(values.data().par_chunks_exact(values.cols()));
        rows.with_min_len(ROWS).for_each(|(mut part, all)| {
            for range in ranges {
                let (own, rest) = part.split_at_mut(range.len());
                own.copy_from_slice(&all[range.clone()]);
                part = rest;
            }
        });
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_and_pieces_are_the_same_values_in_memory_and_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        for place in [Place::Memory, Place::Disk(dir.path().into())] {
            let mut matrix =
                Matrix::new(&place, 10..17, vec![vec![0..2], vec![], vec![2..5]]).unwrap();
            let value = |row: usize, col: usize| (10 * row + col) as f32;
            let rows = |rows: Range<usize>, cols: Range<usize>| {
                let all = rows.clone().flat_map(|r| cols.clone().map(move |c| value(r, c)));
                Tensor::from_vec(rows.len(), cols.len(), all.collect())
            };
            matrix.write_piece(10, &rows(10..14, 0..5)).unwrap();
            matrix.write(0, 14, rows(14..17, 0..2).data()).unwrap();
            matrix.fill(2, 14..17, |out| out.copy_from_slice(rows(14..17, 2..5).data())).unwrap();
            assert_eq!(matrix.column_block(2).unwrap(), rows(10..17, 2..5), "{place:?}");
            assert_eq!(matrix.column_block(1).unwrap().shape(), (7, 0));
            assert_eq!(matrix.row_block(12..16).unwrap(), rows(12..16, 0..5), "{place:?}");
        }
    }
}
