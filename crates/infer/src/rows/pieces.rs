//! Pieces of files that are on disk.

use serde::{Deserialize, Serialize};

/// A piece of a file that is on disk, and its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Piece {
    pub bytes: u64,
    pub crc32: u32,
}

/// The pieces of a file, and the one that is being written.
#[derive(Default)]
pub(super) struct Pieces {
    pub done: Vec<Piece>,
    pub hasher: crc32fast::Hasher,
    pub bytes: u64,
}

/// The rows of a type that are on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// Values of a row.
    pub width: usize,
    /// Pieces of the file.
    pub pieces: Vec<Piece>,
}

impl Kept {
    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Leaves out the pieces behind so many rows; one ends with them.
    pub fn cut(&mut self, rows: usize) {
        let mut left = 4 * (rows * self.width) as u64;
        self.pieces.retain(|piece| {
            let within = piece.bytes <= left;
            left = if within { left - piece.bytes } else { 0 };
            within
        });
    }
}
