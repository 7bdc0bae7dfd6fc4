//! The eras of a batch worker, and what is asked of them. It loads what is asked for, and then what comes next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time after a reply that its era stays in memory for the ask that follows, where its room is needed: that comes as soon as the
/// reply has arrived, or never. An era that is let go too early is loaded again.
const GRACE: Duration = Duration::from_secs(1);

/// Eras by number, and the asks for batches of them. Neither the order of asks nor who asks changes what they get; an era
/// that is asked for again after it was let go is loaded again.
pub(crate) struct Shelf<T, A> {
    state: Mutex<State<T, A>>,
    changed: Condvar,
}

struct State<T, A> {
    eras: BTreeMap<usize, Arc<T>>,
    asks: BTreeMap<usize, VecDeque<(Sequel, A)>>,
    /// Asks about an era that will still come.
    owed: BTreeMap<usize, Owed>,
    /// The era put into memory last.
    last: Option<usize>,
    /// The last era that has been asked for.
    asked: usize,
    /// Eras before this one are not expected to be asked for.
    reached: usize,
    /// True while the loader waits for parts in memory to leave.
    full: bool,
    /// The era that stays all the same.
    kept: Option<usize>,
    closed: bool,
}

/// Asks to come.
struct Owed {
    /// Those that follow a reply under way.
    making: usize,
    /// Those that follow one that was sent.
    sent: usize,
    /// When the last reply was sent.
    since: Instant,
}

impl Owed {
    fn is_due(&self) -> bool {
        self.making > 0 || self.sent > 0 && self.since.elapsed() < GRACE
    }
}

/// Further asks for the same era, which stays for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sequel {
    /// None that is known.
    None,
    /// Another one will follow.
    Comes,
    /// This is one that was to follow.
    IsThis,
}

/// An era to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Batches of it are asked for.
    Asked(usize),
    /// It follows the last one in memory.
    Next(usize),
}

impl<T, A> State<T, A> {
    /// The account of asks to come about an era.
    fn owed(&mut self, era: usize) -> &mut Owed {
        let none = || Owed { making: 0, sent: 0, since: Instant::now() };
        self.owed.entry(era).or_insert_with(none)
    }

    /// Notes that an ask has come which was to follow.
    fn settle(&mut self, era: usize) {
        if let Some(owed) = self.owed.get_mut(&era) {
            owed.sent = owed.sent.saturating_sub(1);
        }
        self.let_go();
    }

    /// While the loader waits for parts to leave: lets go of the eras that nobody asks for, or will within [`GRACE`], but for
    /// the one that stays all the same.
    fn let_go(&mut self) {
        if !self.full {
            return;
        }
        let Self { eras, asks, owed, kept, .. } = self;
        owed.retain(|_, owed| owed.is_due());
        eras.retain(|number, _| {
            asks.contains_key(number) || owed.contains_key(number) || *kept == Some(*number)
        });
    }
}

impl<T, A> Shelf<T, A> {
    /// Nothing in memory.
    pub fn new() -> Self {
        let state = State {
            eras: BTreeMap::new(),
            asks: BTreeMap::new(),
            owed: BTreeMap::new(),
            last: None,
            asked: 0,
            reached: 0,
            full: false,
            kept: None,
            closed: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T, A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State<T, A>>) -> MutexGuard<'s, State<T, A>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an ask about `era`, where all ranks have reached `reached`. Returns the ask once the shelf is closed.
    pub fn ask(&self, (era, reached): (usize, usize), sequel: Sequel, ask: A) -> Option<A> {
        let mut state = self.lock();
        if state.closed {
            return Some(ask);
        }
        // Ranks that start again from a checkpoint begin with an earlier one.
        let again = era < state.reached;
        state.reached = if again { reached } else { state.reached.max(reached) };
        state.asked = if again { era } else { state.asked.max(era) };
        state.asks.entry(era).or_default().push_back((sequel, ask));
        // What ranks have passed is not asked for any more, and nothing that was to follow if they start again.
        let reached = state.reached;
        state.owed.retain(|number, owed| owed.making > 0 || !again && *number >= reached);
        match sequel {
            Sequel::IsThis => state.settle(era),
            _ => state.let_go(),
        }
        self.changed.notify_all();
        None
    }

    /// The next ask whose era is in memory, of the first such era; none once the shelf is closed.
    pub fn next(&self) -> Option<(Arc<T>, A)> {
        let mut state = self.lock();
        // The batch before may have been the last one of its era.
        self.changed.notify_all();
        loop {
            if state.closed {
                return None;
            }
            let State { eras, asks, .. } = &mut *state;
            let here = asks.iter_mut().find_map(|(number, of_era)| {
                let era = eras.get(number)?;
                Some((*number, era.clone(), of_era))
            });
            if let Some((number, era, of_era)) = here
                && let Some((sequel, ask)) = of_era.pop_front()
            {
                if of_era.is_empty() {
                    asks.remove(&number);
                }
                if sequel == Sequel::Comes {
                    state.owed(number).making += 1;
                }
                state.let_go();
                return Some((era, ask));
            }
            state.let_go();
            state = match state.full && !state.owed.is_empty() {
                // Nobody tells when their time is over.
                true => {
                    self.changed
                        .wait_timeout(state, GRACE)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                false => self.wait(state),
            };
        }
    }

    /// Notes that a reply about `era` is sent, which another ask follows.
    pub fn replied(&self, era: usize) {
        let mut state = self.lock();
        let owed = state.owed(era);
        owed.making = owed.making.saturating_sub(1);
        owed.sent += 1;
        owed.since = Instant::now();
    }

    /// Notes that no ask about `era` follows a reply.
    pub fn settle(&self, era: usize) {
        self.lock().settle(era);
        self.changed.notify_all();
    }

    /// The next era to load, and none once the shelf is closed: the first one that is asked for and not in memory, or that
    /// which `follows` the last one, if it comes before: asks overtake each other. Where nothing is asked for it is that
    /// which follows the last one that was, if there `is_room` for it beside those that may still be asked for.
    pub fn wanted(
        &self,
        follows: &dyn Fn(usize) -> Option<usize>,
        is_room: &dyn Fn(usize) -> bool,
    ) -> Option<Wanted> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            let State { eras, asks, reached, last, asked, .. } = &mut *state;
            let next = last.and_then(follows).filter(|next| !eras.contains_key(next));
            if let Some(&number) = asks.keys().find(|number| !eras.contains_key(number)) {
                let before = next.filter(|next| *next < number && *next >= *reached);
                return Some(before.map_or(Wanted::Asked(number), Wanted::Next));
            }
            eras.retain(|number, _| {
                number >= reached || Some(*number) == *last || asks.contains_key(number)
            });
            if let Some(next) = next
                && last.is_some_and(|last| last <= *asked)
                && is_room(next)
            {
                return Some(Wanted::Next(next));
            }
            state = self.wait(state);
        }
    }

    /// Puts an era into memory.
    pub fn put(&self, number: usize, era: Arc<T>) {
        let mut state = self.lock();
        state.full = false;
        state.last = Some(number);
        state.eras.insert(number, era);
        self.changed.notify_all();
    }

    /// Lets go of all eras that nobody asks for at the moment, until the next one is [put](Self::put): the loader waits for
    /// their parts to leave. The era `before` that one stays, which fits beside it, unless all ranks are past it.
    pub fn make_room(&self, before: Option<usize>) {
        let mut state = self.lock();
        state.full = true;
        state.kept = before.filter(|number| *number >= state.reached);
        state.let_go();
        self.changed.notify_all();
    }

    /// Ends all waiting, and returns the asks that are left.
    pub fn close(&self) -> Vec<A> {
        let mut state = self.lock();
        state.closed = true;
        state.eras.clear();
        self.changed.notify_all();
        let left = std::mem::take(&mut state.asks).into_values().flatten();
        left.map(|(_, ask)| ask).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Names = Shelf<&'static str, u32>;

    fn wanted(shelf: &Names, room: bool) -> Option<Wanted> {
        shelf.wanted(&|last| Some(last + 1), &|_| room)
    }

    #[test]
    fn what_is_asked_for_comes_first_and_then_what_follows() {
        let shelf = Names::new();
        assert_eq!(shelf.ask((4, 4), Sequel::None, 1), None);
        assert_eq!(shelf.ask((5, 4), Sequel::None, 2), None);
        assert_eq!(wanted(&shelf, true), Some(Wanted::Asked(4)));
        shelf.put(4, Arc::new("four"));
        assert_eq!(wanted(&shelf, true), Some(Wanted::Asked(5)));
        shelf.put(5, Arc::new("five"));
        assert_eq!(wanted(&shelf, true), Some(Wanted::Next(6)));
        assert!(shelf.lock().asked == 5 && shelf.lock().last == Some(5));
        assert_eq!(shelf.next().unwrap(), (Arc::new("four"), 1));
        assert_eq!(shelf.next().unwrap(), (Arc::new("five"), 2));
        // One that has overtaken those of the era between.
        shelf.ask((7, 4), Sequel::None, 3);
        assert_eq!(wanted(&shelf, false), Some(Wanted::Next(6)));
        shelf.ask((7, 7), Sequel::None, 3);
        assert_eq!(wanted(&shelf, false), Some(Wanted::Asked(7)));
        shelf.put(7, Arc::new("seven"));
        // Ranks that start again.
        shelf.ask((2, 2), Sequel::None, 3);
        assert_eq!(wanted(&shelf, true), Some(Wanted::Asked(2)));
    }

    #[test]
    fn eras_leave_when_they_are_passed_or_room_is_needed() {
        let shelf = Names::new();
        shelf.put(1, Arc::new("one"));
        shelf.put(2, Arc::new("two"));
        shelf.ask((2, 2), Sequel::None, 7);
        assert_eq!(wanted(&shelf, true), Some(Wanted::Next(3)));
        assert_eq!(shelf.lock().eras.keys().copied().collect::<Vec<_>>(), [2]);
        shelf.put(5, Arc::new("five"));
        shelf.make_room(Some(5));
        let left = || shelf.lock().eras.keys().copied().collect::<Vec<_>>();
        assert_eq!(left(), [2, 5], "a batch of 2 is asked for, and 5 stays");
        assert_eq!(shelf.next().unwrap().1, 7);
        assert_eq!(left(), [5], "that was the last batch of 2, and the loader waits");
        shelf.ask((7, 7), Sequel::None, 8);
        shelf.make_room(Some(5));
        assert!(left().is_empty(), "all are past 5");
    }

    #[test]
    fn an_era_stays_for_asks_that_will_come() {
        let shelf = Names::new();
        let left = || shelf.lock().eras.keys().copied().collect::<Vec<_>>();
        shelf.put(1, Arc::new("one"));
        for ask in [3, 4] {
            shelf.ask((1, 1), Sequel::Comes, ask);
        }
        // Replies that take longer than the grace.
        std::thread::sleep(GRACE + GRACE / 10);
        shelf.make_room(None);
        assert_eq!((shelf.next().unwrap().1, shelf.next().unwrap().1), (3, 4));
        std::thread::sleep(GRACE + GRACE / 10);
        shelf.make_room(None);
        assert_eq!(left(), [1]);
        (0..2).for_each(|_| shelf.replied(1));
        shelf.make_room(None);
        assert_eq!(left(), [1]);
        shelf.ask((1, 1), Sequel::IsThis, 5);
        assert_eq!((shelf.next().unwrap().1, left()), (5, vec![1]));
        shelf.settle(1);
        assert_eq!(left(), [0; 0], "all have come");
        // Ranks that are past it, and ranks that start again, do not ask any more.
        for (era, reached) in [(3, 3), (1, 1)] {
            shelf.put(2, Arc::new("two"));
            shelf.ask((2, 2), Sequel::Comes, 7);
            shelf.make_room(None);
            assert_eq!((shelf.next().unwrap().1, left()), (7, vec![2]));
            shelf.replied(2);
            shelf.ask((era, reached), Sequel::None, 8);
            assert!(!left().contains(&2), "{era}: while the loader waits");
            shelf.put(era, Arc::new("again"));
            assert_eq!(shelf.next().unwrap().1, 8);
        }
    }

    #[test]
    fn an_ask_that_does_not_come_holds_nothing_up() {
        let shelf = Names::new();
        shelf.put(1, Arc::new("one"));
        shelf.ask((1, 1), Sequel::Comes, 3);
        shelf.make_room(None);
        assert_eq!(shelf.next().unwrap().1, 3);
        shelf.replied(1);
        std::thread::scope(|scope| {
            let idle = scope.spawn(|| shelf.next().is_none());
            let start = Instant::now();
            while !shelf.lock().eras.is_empty() && start.elapsed() < 20 * GRACE {
                std::thread::sleep(Duration::from_millis(20));
            }
            let left = shelf.lock().eras.len();
            shelf.close();
            assert!(idle.join().unwrap());
            assert_eq!(left, 0);
        });
    }

    #[test]
    fn a_closed_shelf_gives_back_what_was_asked() {
        let shelf = Names::new();
        shelf.ask((9, 0), Sequel::None, 1);
        assert_eq!(shelf.close(), [1]);
        assert_eq!(shelf.ask((9, 0), Sequel::None, 2), Some(2));
        assert!(shelf.next().is_none() && wanted(&shelf, true).is_none());
    }
}
