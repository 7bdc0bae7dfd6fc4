//! Replicated placement: every row on every part.

use super::{Place, Placement};

/// For small types that occur in most batches: requests would cost more than the memory of
/// replicas.
#[derive(Debug, Clone, Copy)]
pub struct Replicated {
    rows: u64,
    parts: usize,
}

impl Replicated {
    /// `rows` rows, all of them in each of `parts` parts.
    pub fn new(rows: u64, parts: usize) -> Self {
        Self { rows, parts }
    }
}

impl Placement for Replicated {
    fn name(&self) -> &'static str {
        "replicated"
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn parts(&self) -> usize {
        self.parts
    }

    fn place(&self, _: u64) -> Place {
        Place::Everywhere
    }
}
