//! Dense matrices of `f32`, row-major, on pooled buffers.

use std::fmt;
use std::sync::Arc;

use crate::pool::Buffer;

/// A `rows × cols` matrix. Cloning shares the buffer; [`Tensor::data_mut`] copies it first if it
/// is shared.
#[derive(Clone)]
pub struct Tensor {
    rows: usize,
    cols: usize,
    buffer: Arc<Buffer>,
}

impl Tensor {
    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        let mut tensor = Self::scratch(rows, cols);
        tensor.data_mut().fill(0.0);
        tensor
    }

    /// A matrix of arbitrary content, for callers that overwrite all of it.
    pub fn scratch(rows: usize, cols: usize) -> Self {
        Self { rows, cols, buffer: Arc::new(Buffer::scratch(rows * cols)) }
    }

    /// A matrix from its rows, one after the other.
    ///
    /// # Panics
    /// If `values` does not hold `rows * cols` values.
    pub fn from_vec(rows: usize, cols: usize, values: Vec<f32>) -> Self {
        assert_eq!(values.len(), rows * cols, "a {rows} × {cols} tensor");
        let mut tensor = Self::scratch(rows, cols);
        tensor.data_mut().copy_from_slice(&values);
        tensor
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// All values, row by row.
    pub fn data(&self) -> &[f32] {
        &self.buffer.data()[..self.rows * self.cols]
    }

    /// Row `r`.
    pub fn row(&self, r: usize) -> &[f32] {
        &self.data()[r * self.cols..(r + 1) * self.cols]
    }

    /// All values for writing; copies them first if the buffer is shared.
    pub fn data_mut(&mut self) -> &mut [f32] {
        let len = self.rows * self.cols;
        if Arc::get_mut(&mut self.buffer).is_none() {
            let mut own = Buffer::scratch(len);
            own.data_mut()[..len].copy_from_slice(&self.buffer.data()[..len]);
            self.buffer = Arc::new(own);
        }
        let buffer = Arc::get_mut(&mut self.buffer).expect("made unique above");
        &mut buffer.data_mut()[..len]
    }

    /// All values for writing, if no other tensor shares the buffer.
    pub(crate) fn unique(&mut self) -> Option<&mut [f32]> {
        let len = self.rows * self.cols;
        Arc::get_mut(&mut self.buffer).map(|buffer| &mut buffer.data_mut()[..len])
    }

    /// The first `rows` rows, sharing the buffer.
    ///
    /// # Panics
    /// If there are fewer rows.
    pub fn head(&self, rows: usize) -> Self {
        assert!(rows <= self.rows, "the first {rows} of {} rows", self.rows);
        Self { rows, cols: self.cols, buffer: self.buffer.clone() }
    }

    /// Reshapes to another shape of as many values.
    ///
    /// # Panics
    /// If the number of values differs.
    pub fn reshape(self, rows: usize, cols: usize) -> Self {
        assert_eq!(self.rows * self.cols, rows * cols, "{:?} as {rows} × {cols}", self.shape());
        Self { rows, cols, buffer: self.buffer }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} × {})", self.rows, self.cols)
    }
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        self.shape() == other.shape() && self.data() == other.data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_to_a_shared_tensor_copies() {
        let a = Tensor::from_vec(2, 2, vec![1.0, 2.0, 3.0, 4.0]);
        let mut b = a.head(1);
        b.data_mut()[0] = 9.0;
        assert_eq!(a.data(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(b.data(), [9.0, 2.0]);
    }
}
