//! The eras that are under way: made ahead by one thread, used by the ranks of this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gnarl_common::{Error, Kind, Result};

/// Eras that are made before any rank asks for them.
const AHEAD: usize = 2;

/// Eras by number, each from when it is made until the ranks of this process have sampled their last batch of it.
#[derive(Debug)]
pub(crate) struct Window<T> {
    /// Ranks of this process.
    ranks: usize,
    deadline: Duration,
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    eras: BTreeMap<usize, Slot<T>>,
    failure: Option<Error>,
    closed: bool,
    /// When parts were last seen to come.
    alive: Instant,
    /// True while no part is read because batches under way need the rooms.
    full: bool,
}

#[derive(Debug)]
struct Slot<T> {
    made: Option<Arc<T>>,
    /// Batches not yet sampled, of the ranks that have announced theirs.
    left: usize,
    announced: usize,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { made: None, left: 0, announced: 0 }
    }
}

impl<T> Window<T> {
    /// No eras yet, for `ranks` of this process, which wait up to `deadline` for a part to come.
    pub fn new(ranks: usize, deadline: Duration) -> Self {
        let state = State {
            eras: BTreeMap::new(),
            failure: None,
            closed: false,
            alive: Instant::now(),
            full: false,
        };
        Self { ranks: ranks.max(1), deadline, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces the batches that a rank samples of era `number`; every rank announces each era once, in order, before it
    /// takes it.
    pub fn announce(&self, number: usize, batches: usize) {
        let mut state = self.lock();
        let slot = state.eras.entry(number).or_default();
        slot.left += batches;
        slot.announced += 1;
        self.release(&mut state, number);
    }

    /// Forgets an era without further batches.
    fn release(&self, state: &mut State<T>, number: usize) {
        let done =
            |slot: &Slot<T>| slot.made.is_some() && slot.left == 0 && slot.announced == self.ranks;
        if state.eras.get(&number).is_some_and(done) {
            state.eras.remove(&number);
            self.changed.notify_all();
        }
    }

    /// Era `number`, for one of the announced batches; waits until it is made.
    ///
    /// # Errors
    /// Those of making it; [`Kind::Rank`] once training has ended, and if no part comes within the deadline.
    pub fn take(&self, number: usize) -> Result<Arc<T>> {
        let mut state = self.lock();
        // Time that nobody waited is no silence.
        state.alive = Instant::now();
        loop {
            if let Some(error) = &state.failure {
                return Err(error.clone());
            }
            if state.closed {
                return Err(Error::new(Kind::Rank, "training ended on another rank"));
            }
            if let Some(slot) = state.eras.get_mut(&number)
                && let Some(made) = slot.made.clone()
            {
                slot.left = slot.left.saturating_sub(1);
                self.release(&mut state, number);
                return Ok(made);
            }
            // Batches that need the rooms are waited for elsewhere, with deadlines of their own.
            let waited = if state.full { Duration::ZERO } else { state.alive.elapsed() };
            let Some(left) = self.deadline.checked_sub(waited).filter(|left| !left.is_zero())
            else {
                let seconds = self.deadline.as_secs_f64();
                return Err(Error::new(
                    Kind::Rank,
                    format!("no part came into memory within {seconds} s"),
                )
                .hint("raise train.deadline_seconds if the disk is slow, or the object store of the parts is away for long"));
            };
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Says that a part has come, or that none is read for now because all rooms are in use.
    pub fn came(&self, full: bool) {
        let mut state = self.lock();
        (state.alive, state.full) = (Instant::now(), full);
        self.changed.notify_all();
    }

    /// Adds era `number`, once fewer than [`AHEAD`] wait for their first batch; `false` once the window is closed.
    pub fn put(&self, number: usize, era: T) -> bool {
        let state = self.lock();
        let waiting = |state: &mut State<T>| {
            let made = state.eras.values().filter(|slot| slot.made.is_some()).count();
            made >= AHEAD && !state.closed
        };
        let waited = self.changed.wait_while(state, waiting);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return false;
        }
        state.eras.entry(number).or_default().made = Some(Arc::new(era));
        self.release(&mut state, number);
        self.changed.notify_all();
        true
    }

    /// Hands an error to the ranks that wait, unless there is one before it.
    pub fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.failure.get_or_insert(error);
        self.changed.notify_all();
    }

    /// Ends all waits, and forgets all eras.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.eras.clear();
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_era_goes_when_the_last_batch_of_all_ranks_is_sampled() {
        let window = Window::new(2, Duration::from_secs(5));
        window.announce(7, 2);
        assert!(window.put(7, "seven"));
        assert_eq!(*window.take(7).unwrap(), "seven");
        assert_eq!(*window.take(7).unwrap(), "seven");
        // The other rank may have batches of it.
        assert!(window.lock().eras.contains_key(&7));
        window.announce(7, 1);
        assert_eq!(*window.take(7).unwrap(), "seven");
        assert!(window.lock().eras.is_empty());
        // A rank without batches keeps nothing.
        window.announce(8, 1);
        window.announce(8, 0);
        assert!(window.put(8, "eight"));
        assert_eq!(*window.take(8).unwrap(), "eight");
        assert!(window.lock().eras.is_empty());
    }

    #[test]
    fn few_eras_are_made_ahead() {
        let window = Window::new(1, Duration::from_secs(5));
        std::thread::scope(|scope| {
            let made =
                scope.spawn(|| (0..4).take_while(|&number| window.put(number, number)).count());
            for number in 0..2 {
                window.announce(number, 1);
                assert_eq!(*window.take(number).unwrap(), number);
            }
            std::thread::sleep(Duration::from_millis(20));
            assert!(window.lock().eras.len() <= AHEAD);
            window.close();
            assert!(made.join().unwrap() >= 2);
        });
    }

    #[test]
    fn failures_and_silence_end_a_wait() {
        let window = Window::<u8>::new(2, Duration::from_millis(10));
        window.announce(1, 1);
        let late = window.take(1).unwrap_err();
        assert!(late.to_string().contains("no part came into memory within 0.01 s"), "{late}");
        window.fail(Error::invalid("part 3 is damaged"));
        for _ in 0..2 {
            assert!(window.take(1).unwrap_err().to_string().contains("part 3"));
        }
    }
    #[test]
    fn full_rooms_are_no_silence() {
        let window = Window::new(1, Duration::from_millis(50));
        window.announce(1, 1);
        window.came(true);
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| window.take(1).map(|era| *era));
            std::thread::sleep(Duration::from_millis(200));
            window.came(false);
            assert!(window.put(1, "one"));
            assert_eq!(taken.join().unwrap().unwrap(), "one");
        });
        window.close();
        assert!(window.take(2).unwrap_err().to_string().contains("training ended"));
    }
}
