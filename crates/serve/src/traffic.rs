//! Bytes that a server receives and sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_flight::FlightData;

/// Bytes of the Flight messages of a server since its start: commands, schemas and columns. Frames, tickets and descriptions
/// of parts, which are short, are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of calls.
    pub received: u64,
    /// Bytes of replies.
    pub sent: u64,
}

/// Counters of [`Traffic`]; clones count together.
#[derive(Clone, Default)]
pub(crate) struct Meter(Arc<Counters>);

#[derive(Default)]
struct Counters {
    received: AtomicU64,
    sent: AtomicU64,
}

impl Meter {
    /// Counts a message that came in.
    pub fn receive(&self, message: &FlightData) {
        self.0.received.fetch_add(bytes(message), Ordering::Relaxed);
    }

    /// Counts a message that goes out.
    pub fn send(&self, message: &FlightData) {
        self.0.sent.fetch_add(bytes(message), Ordering::Relaxed);
    }

    /// The bytes so far.
    pub fn traffic(&self) -> Traffic {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic { received: count(&self.0.received), sent: count(&self.0.sent) }
    }
}

/// Bytes of a message.
pub(crate) fn bytes(message: &FlightData) -> u64 {
    let command = message.flight_descriptor.as_ref().map_or(0, |about| about.cmd.len());
    let all = [message.data_header.len(), message.data_body.len(), message.app_metadata.len()];
    (command + all.iter().sum::<usize>()) as u64
}
