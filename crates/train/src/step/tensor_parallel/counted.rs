//! Counters of one rank's redistributions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::step::Exchanges;

/// Counts of one rank since the start of its training.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// Bytes sent to other ranks.
    sent: AtomicU64,
    /// Nanoseconds that the computing thread spent in exchanges.
    nanos: AtomicU64,
    /// Own columns of all rows.
    taken: AtomicU64,
    /// The bytes of forward and of backward passes of training.
    passes: [AtomicU64; 2],
}

impl Counted {
    /// Bytes sent to other ranks so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Counts bytes sent to other ranks.
    pub fn send(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts columns of all rows on this rank, for messages to pass over.
    pub fn take(&self, columns: usize) {
        self.taken.fetch_add(columns as u64, Ordering::Relaxed);
    }

    /// Counts the time of an exchange: transfer, and waiting for other ranks. Packing and unpacking
    /// of messages come before and after.
    pub fn timed<T>(&self, exchange: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let came = exchange();
        self.nanos.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        came
    }

    /// Counts the bytes sent in the forward and the backward pass of a step.
    pub fn passes(&self, sent: [u64; 2]) {
        for (total, bytes) in self.passes.iter().zip(sent) {
            total.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// All counters.
    pub fn exchanges(&self) -> Exchanges {
        Exchanges {
            bytes: [0, 1].map(|pass| self.passes[pass].load(Ordering::Relaxed)),
            nanos: self.nanos.load(Ordering::Relaxed),
            columns: self.taken.load(Ordering::Relaxed),
        }
    }
}
