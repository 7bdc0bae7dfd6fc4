//! Sizes of chunks.

/// The most that a chunk of a table has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub rows: usize,
    /// Of numbers; a chunk has at least one row.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows: 1 << 15, bytes: 16 << 20 }
    }
}
