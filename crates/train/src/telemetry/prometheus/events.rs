//! Epochs of a run as server-sent events, for its live page.
//!
//! All clients read one list of events, each at its own pace on a thread of its own: publishing is an addition to that
//! list, and waits for none of them.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::evaluation::Scores;
use crate::telemetry::EpochRecord;

/// Most clients at a time.
pub(super) const MOST_CLIENTS: usize = 32;
/// Most events that are kept; whoever is further behind goes on with the oldest of them.
const MOST_KEPT: usize = 10_000;
/// Most events written at once, between two looks at the list.
const AT_ONCE: usize = 256;
/// Time without events after which a client is written to all the same, to learn if it is still there.
const QUIET: Duration = Duration::from_secs(10);
/// Timeout of writing to a client.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time for clients to read the last events when the run ends.
const FAREWELL: Duration = Duration::from_millis(500);

/// The events of a run.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Distinguishes this run from others that are served at the address before or after it.
    run: u64,
    /// Epochs the run takes at most.
    planned: usize,
    list: Mutex<List>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct List {
    /// Number of the first event that is kept.
    first: u64,
    kept: VecDeque<Arc<str>>,
    ended: bool,
    clients: usize,
}

impl List {
    /// Number of the next event.
    fn next(&self) -> u64 {
        self.first + self.kept.len() as u64
    }
}

/// The data of an event: an epoch.
#[derive(Serialize)]
struct Epoch<'a> {
    epoch: usize,
    epochs: usize,
    loss: f64,
    lr: f32,
    grad_norm: Option<f64>,
    train: &'a Scores,
    valid: &'a Scores,
    test: &'a Scores,
    seconds: f64,
    evaluate_seconds: f64,
    edges_per_second: f64,
    verdict: String,
}

impl Events {
    /// No events yet, of a run of `planned` epochs.
    pub fn new(planned: usize) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { run: since.as_nanos() as u64, planned, ..Self::default() }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an epoch.
    pub fn publish(&self, record: &EpochRecord) {
        let epoch = Epoch {
            epoch: record.epoch,
            epochs: self.planned,
            loss: record.loss,
            lr: record.lr,
            grad_norm: record.grad_norm,
            train: &record.train,
            valid: &record.valid,
            test: &record.test,
            seconds: record.seconds,
            evaluate_seconds: record.stages.evaluate,
            edges_per_second: record.sampled_edges as f64 / record.seconds.max(1e-9),
            verdict: record.verdict().to_string(),
        };
        let text = serde_json::to_string(&epoch).unwrap_or_default();
        let mut list = self.list();
        if list.kept.len() == MOST_KEPT {
            list.kept.pop_front();
            list.first += 1;
        }
        list.kept.push_back(text.into());
        drop(list);
        self.changed.notify_all();
    }

    /// Tells clients that no more events follow, and gives them a moment to read them.
    pub fn end(&self) {
        let until = Instant::now() + FAREWELL;
        let mut list = self.list();
        list.ended = true;
        self.changed.notify_all();
        while list.clients > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            list = self.changed.wait_timeout(list, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The id of an event.
    fn id(&self, number: u64) -> String {
        format!("{:x}-{number}", self.run)
    }

    /// Number of the event after the one with `id`; the first one for ids of other runs.
    fn after(&self, id: &str) -> u64 {
        let number = id.strip_prefix(&format!("{:x}-", self.run));
        let number: Option<u64> = number.and_then(|number| number.parse().ok());
        number.map_or(0, |number| number.saturating_add(1))
    }

    /// Takes a place among the clients; none if all are taken.
    pub fn join(self: &Arc<Self>) -> Option<Place> {
        let mut list = self.list();
        if list.clients >= MOST_CLIENTS {
            return None;
        }
        list.clients += 1;
        Some(Place(self.clone()))
    }

    /// Events from number `next` on, once there are some, with the number after the last, and true if none follow. None
    /// after [`QUIET`].
    fn wait(&self, next: u64) -> (Vec<Arc<str>>, u64, bool) {
        let until = Instant::now() + QUIET;
        let mut list = self.list();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if list.next() > next || list.ended || left.is_zero() {
                let from = next.max(list.first);
                let skip = (from - list.first) as usize;
                let found: Vec<_> = list.kept.iter().skip(skip).take(AT_ONCE).cloned().collect();
                let after = from + found.len() as u64;
                return (found, after, list.ended && after >= list.next());
            }
            list = self.changed.wait_timeout(list, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The place of a client, free again when dropped.
pub(super) struct Place(Arc<Events>);

impl Place {
    /// Writes events to the client until the run ends, all of them or those after the one with the id `last`.
    ///
    /// # Errors
    /// If the client is gone, or does not read.
    pub fn serve(&self, mut stream: TcpStream, last: Option<&str>) -> io::Result<()> {
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut next = last.map_or(0, |last| self.0.after(last));
        loop {
            let (found, after, ended) = self.0.wait(next);
            let first = after - found.len() as u64;
            let mut text = String::new();
            for (number, event) in (first..).zip(&found) {
                text += &format!("id: {}\ndata: {event}\n\n", self.0.id(number));
            }
            if text.is_empty() && !ended {
                text += ": quiet\n\n";
            }
            if ended {
                text += "event: end\ndata: {}\n\n";
            }
            stream.write_all(text.as_bytes())?;
            if ended {
                return Ok(());
            }
            next = after;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.list().clients -= 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_are_behind_go_on_with_what_is_kept() {
        let events = Events::new(3);
        for epoch in 1..=MOST_KEPT + 5 {
            events.publish(&EpochRecord { epoch, ..Default::default() });
        }
        let (found, after, ended) = events.wait(0);
        assert!(found[0].starts_with("{\"epoch\":6,\"epochs\":3,"), "{}", found[0]);
        assert_eq!((found.len(), after, ended), (AT_ONCE, 5 + AT_ONCE as u64, false));
        let last = MOST_KEPT as u64 + 4;
        assert_eq!(events.wait(last).0.len(), 1);
        events.end();
        assert!(matches!(events.wait(last + 1), (found, _, true) if found.is_empty()));
    }

    #[test]
    fn clients_of_another_run_begin_anew() {
        let [one, two] = [Events { run: 1, ..Events::new(1) }, Events { run: 2, ..Events::new(1) }];
        assert_eq!((one.after(&one.id(7)), two.after(&one.id(7))), (8, 0));
        assert_eq!((one.after("7"), one.after("1-x"), one.after("")), (0, 0, 0));
    }

    #[test]
    fn places_are_limited_and_free_again() {
        let events = Arc::new(Events::new(1));
        let mut places: Vec<_> = (0..MOST_CLIENTS).map(|_| events.join().unwrap()).collect();
        assert!(events.join().is_none());
        places.pop();
        assert!(events.join().is_some());
    }
}
