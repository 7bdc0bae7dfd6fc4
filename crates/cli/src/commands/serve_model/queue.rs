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

/// Items that wait, and are taken in batches: in turns the smallest first and the oldest first, so that neither those who ask
/// for much nor those who ask often keep the others waiting. A full queue gives up its largest item for a smaller one.
pub(super) struct Queue<T> {
    limits: Limits,
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: VecDeque<Waiting<T>>,
    next: u64,
    closed: bool,
    /// True if the next batch begins with the smallest items.
    smallest: bool,
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
        let state = State { waiting: VecDeque::new(), next: 0, closed: false, smallest: true };
        Self { limits, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds an item of some size; its number, and the larger one that was given up for it.
    ///
    /// # Errors
    /// If the queue is closed, or full of items that are no larger.
    pub fn push(&self, item: T, size: usize) -> Result<(u64, Option<T>), Rejected> {
        let mut state = self.locked();
        if state.closed {
            return Err(Rejected::Closed);
        }
        let mut given_up = None;
        if state.waiting.len() >= self.limits.length {
            let (place, largest) = state.largest().ok_or(Rejected::Full)?;
            if largest <= size {
                return Err(Rejected::Full);
            }
            given_up = state.waiting.remove(place).map(|waiting| waiting.item);
        }
        let number = state.next;
        state.next += 1;
        state.waiting.push_back(Waiting { number, size, since: Instant::now(), item });
        self.changed.notify_all();
        Ok((number, given_up))
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

    /// Takes items that have waited together once they fill a batch or the oldest has lingered;
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
        let deadline = self.limits.deadline;
        state.waiting.retain(|waiting| waiting.since.elapsed() <= deadline);
        let (mut items, mut size) = (Vec::new(), 0);
        while let Some(place) = state.first() {
            if !items.is_empty() && size + state.waiting[place].size > self.limits.batch {
                break;
            }
            if let Some(taken) = state.waiting.remove(place) {
                size += taken.size;
                items.push(taken.item);
            }
        }
        state.smallest = !state.smallest;
        items
    }

    fn locked(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// Place of the item that is taken first.
    fn first(&self) -> Option<usize> {
        let smallest = || (0..self.waiting.len()).min_by_key(|&place| self.waiting[place].size);
        if self.smallest { smallest() } else { (!self.waiting.is_empty()).then_some(0) }
    }

    /// Place and size of the largest item.
    fn largest(&self) -> Option<(usize, usize)> {
        let sizes = self.waiting.iter().map(|waiting| waiting.size).enumerate();
        sizes.max_by_key(|&(_, size)| size)
    }

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
    fn batches_are_bounded_and_take_turns() {
        let queue = queue(8, LONG, LONG);
        for (item, size) in [(1, 4), (2, 6), (3, 1), (4, 50), (5, 2), (6, 9), (7, 3)] {
            queue.push(item, size).unwrap();
        }
        assert_eq!(queue.take(), Some(vec![3, 5, 7, 1]));
        assert_eq!(queue.take(), Some(vec![2]));
        assert_eq!(queue.take(), Some(vec![6]));
        assert_eq!(queue.take(), Some(vec![4]));
        queue.push(5, 2).unwrap();
        queue.close();
        assert_eq!(queue.push(6, 1), Err(Rejected::Closed));
        assert_eq!(queue.take(), Some(vec![5]));
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn a_full_queue_rejects_and_a_withdrawn_item_makes_room() {
        let queue = queue(2, LONG, LONG);
        let (first, _) = queue.push(1, 1).unwrap();
        queue.push(2, 1).unwrap();
        assert_eq!(queue.push(3, 1), Err(Rejected::Full));
        assert!(queue.withdraw(first) && !queue.withdraw(first));
        queue.push(4, 1).unwrap();
        assert_eq!(queue.take(), Some(vec![2, 4]));
    }

    #[test]
    fn a_full_queue_gives_up_its_largest_item_for_a_smaller_one() {
        let queue = queue(2, LONG, LONG);
        queue.push(1, 5).unwrap();
        queue.push(2, 7).unwrap();
        assert_eq!(queue.push(3, 7), Err(Rejected::Full));
        assert_eq!(queue.push(4, 6).unwrap().1, Some(2));
        assert_eq!(queue.take(), Some(vec![1]));
        queue.close();
        assert_eq!(queue.take(), Some(vec![4]));
    }

    #[test]
    fn items_beyond_their_deadline_are_dropped() {
        let queue = queue(4, Duration::ZERO, Duration::ZERO);
        queue.push(1, 1).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(queue.take(), Some(vec![]));
    }
}
