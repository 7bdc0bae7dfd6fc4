//! Sizes and deadlines of transfers.

use std::time::Duration;

/// Sizes and deadlines of transfers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of a part; a file of no more is one request.
    pub part: usize,
    /// Requests at once. With [`Self::part`], the memory of a transfer.
    pub concurrent: usize,
    /// Longest wait for one request, with its repetitions.
    pub deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // Four parts of this size keep a connection of 10 GBit/s busy over a round trip of 50 ms.
        Self { part: 16 << 20, concurrent: 4, deadline: Duration::from_secs(300) }
    }
}

/// The most parts of an object (S3 allows 10,000 of them).
pub(crate) const PARTS: u64 = 10_000;
