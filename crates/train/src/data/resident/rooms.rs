//! A bounded number of parts in memory, those of batches under way included.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Rooms for parts. A part that is to be read waits for one.
#[derive(Debug, Clone)]
pub(crate) struct Rooms(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    closed: bool,
}

/// A room that is taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Room(Arc<Inner>);

impl Rooms {
    /// Rooms for `limit` parts.
    pub fn new(limit: usize) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Inner { limit: limit.max(1), state, changed }))
    }

    /// Returns whether all are taken.
    pub fn is_full(&self) -> bool {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.taken >= self.0.limit
    }

    /// Number of rooms that are free.
    #[cfg(feature = "serve")]
    pub fn free(&self) -> usize {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.limit.saturating_sub(state.taken)
    }

    /// Waits for a room; none once they are closed, or it is not `wanted` any more ([`Self::look_again`]).
    pub fn enter(&self, wanted: &dyn Fn() -> bool) -> Option<Room> {
        let inner = &self.0;
        let state = inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |state: &mut State| state.taken >= inner.limit && !state.closed && wanted();
        let waited = inner.changed.wait_while(state, full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.closed || !wanted() {
            return None;
        }
        state.taken += 1;
        Some(Room(inner.clone()))
    }

    /// Returns whether they are closed.
    pub fn is_closed(&self) -> bool {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).closed
    }

    /// Has whoever waits for a room ask again whether it is wanted.
    pub fn look_again(&self) {
        // Between the question and the wait nobody else has the lock.
        drop(self.0.state.lock());
        self.0.changed.notify_all();
    }

    /// Ends all waits.
    pub fn close(&self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.0.changed.notify_all();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).taken -= 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_room_is_free_when_its_part_is_gone() {
        let rooms = Rooms::new(2);
        let first = rooms.enter(&|| true).unwrap();
        let second = rooms.enter(&|| true).unwrap();
        std::thread::scope(|scope| {
            let third = scope.spawn(|| rooms.enter(&|| true).is_some());
            std::thread::sleep(Duration::from_millis(20));
            assert!(!third.is_finished() && rooms.is_full());
            drop(first);
            assert!(third.join().unwrap());
            let fourth =
                scope.spawn(|| (rooms.enter(&|| true).is_some(), rooms.enter(&|| true).is_some()));
            std::thread::sleep(Duration::from_millis(20));
            rooms.close();
            assert!(!fourth.join().unwrap().1);
        });
        drop(second);
    }

    #[test]
    fn a_room_that_is_not_wanted_any_more_is_not_waited_for() {
        let rooms = Rooms::new(1);
        let wanted = AtomicBool::new(true);
        let first = rooms.enter(&|| true);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| rooms.enter(&|| wanted.load(Ordering::Relaxed)).is_some());
            std::thread::sleep(Duration::from_millis(20));
            rooms.look_again();
            std::thread::sleep(Duration::from_millis(20));
            assert!(!second.is_finished());
            wanted.store(false, Ordering::Relaxed);
            rooms.look_again();
            assert!(!second.join().unwrap());
        });
        assert!(rooms.is_full() && !rooms.is_closed());
        drop(first);
        assert!(rooms.enter(&|| true).is_some());
    }
}
