//! Selection of rows and columns.

use std::ops::Range;

use rayon::prelude::*;

use crate::kernel::chunks::each_pair;
use crate::kernel::elementwise::copy;
use crate::kernel::gather::gather_sum;
use crate::kernel::row_source::Rows;
use crate::{Tape, Tensor, Var};

impl Tape<'_> {
    /// Row `i` of the result is row `index[i]` of `x`; rows may repeat.
    ///
    /// # Panics
    /// If an index is not below the number of rows.
    pub fn gather_rows(&mut self, x: Var, index: &[u32]) -> Var {
        let (rows, cols) = self.shape(x);
        assert!(index.iter().all(|&i| (i as usize) < rows), "gather from {rows} rows");
        let mut y = Tensor::scratch(index.len(), cols);
        let value = self.value(x);
        if cols > 0 {
            let chunks = y.data_mut().par_chunks_mut(256 * cols);
            chunks.zip(index.par_chunks(256)).for_each(|(out, index)| {
                for (out, &i) in out.chunks_exact_mut(cols).zip(index) {
                    out.copy_from_slice(value.row(i as usize));
                }
            });
        }
        let index = if self.needs_grad(x) { index.to_vec() } else { Vec::new() };
        self.push(y, self.needs_grad(x), move |grads, grad| {
            let (indptr, positions) = invert(&index, rows);
            let mut to_x = Tensor::scratch(rows, cols);
            let dy = Rows::new(grad.data(), cols);
            gather_sum(to_x.data_mut(), (&indptr, &positions), dy, |_, _| 1.0, None);
            grads.add(x, to_x);
        })
    }

    /// The first `rows` rows of `x`, without a copy.
    ///
    /// # Panics
    /// If there are fewer rows.
    pub fn head_rows(&mut self, x: Var, rows: usize) -> Var {
        let all = self.shape(x).0;
        if rows == all {
            return x;
        }
        if let Some((sparse, count)) = self.sparse_value(x) {
            assert!(rows <= count, "the first {rows} of {count} rows");
            return self.push_sparse(sparse, rows);
        }
        let head = self.value(x).head(rows);
        let needed = self.needs_grad(x);
        self.push(head, needed, move |grads, grad| grads.add_head(x, grad, all))
    }

    /// Successive rows of `x`. Gradients of many ranges are added up in place.
    ///
    /// # Panics
    /// If there are fewer rows.
    pub fn row_range(&mut self, x: Var, range: Range<usize>) -> Var {
        let (rows, cols) = self.shape(x);
        let mut y = Tensor::scratch(range.len(), cols);
        copy(y.data_mut(), &self.value(x).data()[range.start * cols..range.end * cols]);
        self.push(y, self.needs_grad(x), move |grads, grad| {
            grads.add_rows(x, &grad, range.start, rows);
        })
    }

    /// Reshapes `x` to another shape of as many values.
    ///
    /// # Panics
    /// If the number of values differs.
    pub fn reshape(&mut self, x: Var, rows: usize, cols: usize) -> Var {
        let (before, needed) = (self.shape(x), self.needs_grad(x));
        let seen = self.value(x).clone().reshape(rows, cols);
        self.push(seen, needed, move |grads, grad| grads.add(x, grad.reshape(before.0, before.1)))
    }

    /// The columns of all `parts` side by side.
    ///
    /// # Panics
    /// If the numbers of rows differ or there is no part.
    pub fn concat_cols(&mut self, parts: &[Var]) -> Var {
        if let [all] = parts {
            return *all;
        }
        let rows = self.shape(parts[0]).0;
        assert!(parts.iter().all(|&p| self.shape(p).0 == rows), "concat_cols of {rows} rows");
        let widths: Vec<usize> = parts.iter().map(|&p| self.shape(p).1).collect();
        let total = widths.iter().sum();
        let mut y = Tensor::scratch(rows, total);
        let mut at = 0;
        for (&part, &width) in parts.iter().zip(&widths) {
            copy_cols((y.data_mut(), total, at), (self.value(part).data(), width, 0), width);
            at += width;
        }
        let needed = parts.iter().any(|&p| self.needs_grad(p));
        let parts = parts.to_vec();
        self.push(y, needed, move |grads, grad| {
            let mut at = 0;
            for (part, width) in parts.into_iter().zip(widths) {
                if grads.wants(part) {
                    let mut to_part = Tensor::scratch(rows, width);
                    copy_cols((to_part.data_mut(), width, 0), (grad.data(), total, at), width);
                    grads.add(part, to_part);
                }
                at += width;
            }
        })
    }

    /// The rows of all `parts`, one part below the other.
    ///
    /// # Panics
    /// If the numbers of columns differ or there is no part.
    pub fn concat_rows(&mut self, parts: &[Var]) -> Var {
        let cols = self.shape(parts[0]).1;
        assert!(parts.iter().all(|&p| self.shape(p).1 == cols), "concat_rows of {cols} columns");
        let heights: Vec<usize> = parts.iter().map(|&p| self.shape(p).0).collect();
        let mut y = Tensor::scratch(heights.iter().sum(), cols);
        let mut rest = y.data_mut();
        for (&part, height) in parts.iter().zip(&heights) {
            let (out, tail) = rest.split_at_mut(height * cols);
            copy(out, self.value(part).data());
            rest = tail;
        }
        let needed = parts.iter().any(|&p| self.needs_grad(p));
        let parts = parts.to_vec();
        self.push(y, needed, move |grads, grad| {
            let mut rest = grad.data();
            for (part, height) in parts.into_iter().zip(heights) {
                let (from, tail) = rest.split_at(height * cols);
                if grads.wants(part) {
                    let mut to_part = Tensor::scratch(height, cols);
                    copy(to_part.data_mut(), from);
                    grads.add(part, to_part);
                }
                rest = tail;
            }
        })
    }

    /// Columns `first..first + count` of `x`; all of them without a copy.
    ///
    /// # Panics
    /// If `x` has fewer columns.
    pub fn slice_cols(&mut self, x: Var, first: usize, count: usize) -> Var {
        let (rows, cols) = self.shape(x);
        assert!(first + count <= cols, "columns {first}..{} of {cols}", first + count);
        if count == cols {
            return x;
        }
        let mut y = Tensor::scratch(rows, count);
        copy_cols((y.data_mut(), count, 0), (self.value(x).data(), cols, first), count);
        self.push(y, self.needs_grad(x), move |grads, grad| {
            let mut to_x = Tensor::zeros(rows, cols);
            copy_cols((to_x.data_mut(), cols, first), (grad.data(), count, 0), count);
            grads.add(x, to_x);
        })
    }
}

/// Copies `width` columns from column `from_at` of rows of `from_cols` values to column `to_at`
/// of rows of `to_cols` values.
fn copy_cols(
    (to, to_cols, to_at): (&mut [f32], usize, usize),
    (from, from_cols, from_at): (&[f32], usize, usize),
    width: usize,
) {
    if width == 0 {
        return;
    }
    each_pair((to, 256 * to_cols), (from, 256 * from_cols), &|to, from| {
        for (to, from) in to.chunks_exact_mut(to_cols).zip(from.chunks_exact(from_cols)) {
            to[to_at..to_at + width].copy_from_slice(&from[from_at..from_at + width]);
        }
    });
}

/// For every value below `rows`, the positions in `index` that hold it, ascending: offsets and
/// positions.
fn invert(index: &[u32], rows: usize) -> (Vec<u32>, Vec<u32>) {
    let mut indptr = vec![0u32; rows + 1];
    for &i in index {
        indptr[i as usize + 1] += 1;
    }
    for i in 0..rows {
        indptr[i + 1] += indptr[i];
    }
    let mut next = indptr.clone();
    let mut positions = vec![0u32; index.len()];
    for (position, &i) in index.iter().enumerate() {
        positions[next[i as usize] as usize] = position as u32;
        next[i as usize] += 1;
    }
    (indptr, positions)
}
