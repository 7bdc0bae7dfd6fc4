//! The bounded queue of requests.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Limits of a queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Most items that wait.
    pub length: usize,
    /// Size with which a batch is full; one larger item is a batch of its own.
    pub batch: usize,
    /// Time that an item waits for others.
    pub linger: Duration,
    /// Time after which an item is not worth taking.
    pub deadline: Duration,
}

/// The reason why an item is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejected {
    /// As many wait as may.
    Full,
    /// The queue is closed.
    Closed,
}

/// Items that wait, in their order, and are taken in batches.
pub(super) struct Queue<T> {
    limits: Limits,
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: VecDeque<Waiting<T>>,
    next: u64,
    closed: bool,
}

struct Waiting<T> {
    number: u64,
    size: usize,
    since: Instant,
    item: T,
}

impl<T> Queue<T> {
    /// An empty queue.
    pub fn new(limits: Limits) -> Self {
        let state = State { waiting: VecDeque::new(), next: 0, closed: false };
        Self { limits, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds an item of some size; its number.
    ///
    /// # Errors
    /// If the queue is full or closed.
    pub fn push(&self, item: T, size: usize) -> Result<u64, Rejected> {
        let mut state = self.locked();
        if state.closed {
            return Err(Rejected::Closed);
        }
        if state.waiting.len() >= self.limits.length {
            return Err(Rejected::Full);
        }
        let number = state.next;
        state.next += 1;
        state.waiting.push_back(Waiting { number, size, since: Instant::now(), item });
        self.changed.notify_all();
        Ok(number)
    }

    /// Number of items that wait.
    pub fn len(&self) -> usize {
        self.locked().waiting.len()
    }

    /// Removes an item that still waits; false if it was taken.
    pub fn withdraw(&self, number: u64) -> bool {
        let mut state = self.locked();
        let place = state.waiting.iter().position(|waiting| waiting.number == number);
        place.is_some_and(|place| state.waiting.remove(place).is_some())
    }

    /// Takes the items that have waited together, in their order, once they fill a batch or the first has lingered;
    /// those beyond their deadline are dropped, so that none may be left. None when the queue is closed and empty.
    pub fn take(&self) -> Option<Vec<T>> {
        let mut state = self.locked();
        loop {
            let Some(first) = state.waiting.front() else {
                if state.closed {
                    return None;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = self.limits.linger.saturating_sub(first.since.elapsed());
            // Nothing joins the batch of a closed queue or of a full one.
            let ready = state.closed || state.waiting.len() >= self.limits.length;
            if left.is_zero() || ready || state.size() >= self.limits.batch {
                return Some(self.batch(&mut state));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Closes the queue: what waits is taken, nothing is added.
    pub fn close(&self) {
        self.locked().closed = true;
        self.changed.notify_all();
    }

    /// Returns whether the queue is closed.
    pub fn is_closed(&self) -> bool {
        self.locked().closed
    }

    fn batch(&self, state: &mut State<T>) -> Vec<T> {
        let (mut items, mut size) = (Vec::new(), 0);
        while let Some(first) = state.waiting.front() {
            let late = first.since.elapsed() > self.limits.deadline;
            if !late && !items.is_empty() && size + first.size > self.limits.batch {
                break;
            }
            let taken = state.waiting.pop_front().filter(|_| !late);
            if let Some(taken) = taken {
                size += taken.size;
                items.push(taken.item);
            }
        }
        items
    }

    fn locked(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    fn size(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.size).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(length: usize, linger: Duration, deadline: Duration) -> Queue<u32> {
        Queue::new(Limits { length, batch: 10, linger, deadline })
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn batches_are_in_order_and_bounded() {
        let queue = queue(8, LONG, LONG);
        for (item, size) in [(1, 4), (2, 6), (3, 1), (4, 50), (5, 2)] {
            queue.push(item, size).unwrap();
        }
        assert_eq!(queue.take(), Some(vec![1, 2]));
        assert_eq!(queue.take(), Some(vec![3]));
        assert_eq!(queue.take(), Some(vec![4]));
        queue.close();
        assert_eq!(queue.push(6, 1), Err(Rejected::Closed));
        assert_eq!(queue.take(), Some(vec![5]));
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn a_full_queue_rejects_and_a_withdrawn_item_makes_room() {
        let queue = queue(2, LONG, LONG);
        let first = queue.push(1, 1).unwrap();
        queue.push(2, 1).unwrap();
        assert_eq!(queue.push(3, 1), Err(Rejected::Full));
        assert!(queue.withdraw(first) && !queue.withdraw(first));
        queue.push(4, 1).unwrap();
        assert_eq!(queue.take(), Some(vec![2, 4]));
    }

    #[test]
    fn items_beyond_their_deadline_are_dropped() {
        let queue = queue(4, Duration::ZERO, Duration::ZERO);
        queue.push(1, 1).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(queue.take(), Some(vec![]));
    }
}
