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

    /// Waits for a room; none once they are closed.
    pub fn enter(&self) -> Option<Room> {
        let inner = &self.0;
        let state = inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |state: &mut State| state.taken >= inner.limit && !state.closed;
        let waited = inner.changed.wait_while(state, full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return None;
        }
        state.taken += 1;
        Some(Room(inner.clone()))
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_room_is_free_when_its_part_is_gone() {
        let rooms = Rooms::new(2);
        let first = rooms.enter().unwrap();
        let second = rooms.enter().unwrap();
        std::thread::scope(|scope| {
            let third = scope.spawn(|| rooms.enter().is_some());
            std::thread::sleep(Duration::from_millis(20));
            assert!(!third.is_finished() && rooms.is_full());
            drop(first);
            assert!(third.join().unwrap());
            let fourth = scope.spawn(|| (rooms.enter().is_some(), rooms.enter().is_some()));
            std::thread::sleep(Duration::from_millis(20));
            rooms.close();
            assert!(!fourth.join().unwrap().1);
        });
        drop(second);
    }
}
