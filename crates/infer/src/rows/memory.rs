//! Rows in memory.

/// Rows of one width.
#[derive(Debug)]
pub(super) struct Rows {
    pub width: usize,
    pub values: Vec<f32>,
}

impl Rows {
    /// No rows, with room for so many.
    pub fn with_capacity(rows: usize, width: usize) -> Self {
        Self { width, values: Vec::with_capacity(rows * width) }
    }
}
