//! The batch workers of a run, as a state machine without clock or wire.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The batch workers that have said within the lease that they live.
#[derive(Debug)]
pub(super) struct Roster {
    lease: Duration,
    /// The last word of each, by address.
    heard: BTreeMap<String, Instant>,
}

/// A change of the roster by a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The worker is new, or was given up.
    Joined,
    /// It was known.
    None,
}

impl Roster {
    /// Nobody yet.
    pub fn new(lease: Duration) -> Self {
        Self { lease, heard: BTreeMap::new() }
    }

    /// Notes that the worker at `uri` lives.
    pub fn hear(&mut self, uri: &str, now: Instant) -> Change {
        match self.heard.insert(uri.into(), now) {
            None => Change::Joined,
            Some(_) => Change::None,
        }
    }

    /// Forgets the worker at `uri`, which has said that it ends; returns whether it was known.
    pub fn leave(&mut self, uri: &str) -> bool {
        self.heard.remove(uri).is_some()
    }

    /// Gives up workers whose lease is over, and returns their addresses.
    pub fn expire(&mut self, now: Instant) -> Vec<String> {
        let lease = self.lease;
        let over = |last: &Instant| now.saturating_duration_since(*last) > lease;
        let gone: Vec<String> =
            self.heard.iter().filter(|(_, last)| over(last)).map(|(uri, _)| uri.clone()).collect();
        self.heard.retain(|_, last| !over(last));
        gone
    }

    /// The addresses of those that live, ascending.
    pub fn living(&self) -> Vec<String> {
        self.heard.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_given_up_when_their_lease_is_over_and_may_come_back() {
        let (start, lease) = (Instant::now(), Duration::from_secs(5));
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut roster = Roster::new(lease);
        assert_eq!(roster.hear("b", at(0)), Change::Joined);
        assert_eq!(roster.hear("a", at(1)), Change::Joined);
        assert_eq!(roster.hear("b", at(4)), Change::None);
        assert!(roster.expire(at(5)).is_empty());
        assert_eq!(roster.living(), ["a", "b"]);
        assert_eq!(roster.expire(at(8)), ["a"]);
        assert_eq!(roster.living(), ["b"]);
        assert_eq!(roster.hear("a", at(9)), Change::Joined);
        assert!(roster.leave("b") && !roster.leave("b"));
        assert_eq!(roster.living(), ["a"]);
    }
}
