//! The thread that reads parts, ahead of the lists that are made of them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use gnarl_common::{Error, Kind, Result};

use super::part::LoadedPart;
use super::rooms::{Room, Rooms};
use crate::faults;

/// A report on parts that are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coming {
    /// A part has been read.
    Came,
    /// All rooms are taken by parts of batches under way.
    Full,
}

/// Reads a part, which takes up the room.
pub(super) type Load = dyn Fn(usize, Room) -> Result<LoadedPart> + Send;

/// Reads the parts that are wanted one after the other, each as soon as there is room for it.
pub(super) struct Reader {
    shared: Arc<Shared>,
    rooms: Rooms,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Parts to be read, in this order.
    wanted: VecDeque<usize>,
    /// The part that is being read, or for which there is no room yet.
    reading: Option<usize>,
    /// True while it waits for a room.
    full: bool,
    /// Parts that nobody has taken yet.
    come: Vec<Arc<LoadedPart>>,
    failure: Option<Error>,
    /// True once nothing more will come.
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The next part to be read; none once nobody wants any.
    fn next(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.ended {
                return None;
            }
            if let Some(part) = state.wanted.pop_front() {
                state.reading = Some(part);
                return Some(part);
            }
            state = self.wait(state);
        }
    }

    /// A room, for a part that is still wanted; none if it is not, or rooms are closed.
    fn room(&self, rooms: &Rooms) -> Option<Room> {
        if rooms.is_full() {
            self.lock().full = true;
            self.changed.notify_all();
        }
        let room = rooms.enter(&|| self.lock().reading.is_some());
        let mut state = self.lock();
        state.full = false;
        self.changed.notify_all();
        room
    }

    /// Reads parts by `load` until nobody wants any.
    fn read(&self, load: &Load, rooms: &Rooms) -> Result<()> {
        while let Some(part) = self.next() {
            let Some(room) = self.room(rooms) else {
                if rooms.is_closed() {
                    return Ok(());
                }
                continue;
            };
            faults::reached("load");
            let loaded = load(part, room)?;
            let mut state = self.lock();
            if state.reading.take().is_some() {
                state.come.push(Arc::new(loaded));
            }
            drop(state);
            self.changed.notify_all();
        }
        Ok(())
    }
}

impl Reader {
    /// A thread that reads parts by `load` into `rooms`.
    ///
    /// # Errors
    /// If the system starts no thread.
    pub fn new(load: Box<Load>, rooms: &Rooms) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let run = {
            let shared = shared.clone();
            let rooms = rooms.clone();
            move || {
                let read = AssertUnwindSafe(|| shared.read(&load, &rooms));
                let died =
                    || Err(Error::new(Kind::Limit, "the thread that reads parts ahead died"));
                let failure = catch_unwind(read).unwrap_or_else(|_| died()).err();
                let mut state = shared.lock();
                state.failure = failure;
                state.ended = true;
                drop(state);
                shared.changed.notify_all();
            }
        };
        let spawned = Builder::new().name("read".into()).spawn(run);
        let no_thread = |e| Error::new(Kind::Limit, format!("a thread to read parts ahead: {e}"));
        spawned.map_err(no_thread)?;
        Ok(Self { shared, rooms: rooms.clone() })
    }

    /// The number of `parts` that have no room yet.
    #[cfg(feature = "serve")]
    pub fn missing(&self, parts: &[usize]) -> usize {
        let state = self.shared.lock();
        let reading = state.reading.filter(|_| !state.full);
        let here = |part: &&usize| {
            reading == Some(**part) || state.come.iter().any(|at| at.nodes.part == **part)
        };
        parts.len() - parts.iter().filter(here).count()
    }

    /// Wants the parts `now`, then those of `next`, and no others: what has come of others gives up its room, and so does what
    /// has come of `next` while parts of `now` are missing, which may need it.
    pub fn want(&self, now: &[usize], next: &[usize]) {
        let mut state = self.shared.lock();
        let has_come =
            |state: &State, part: usize| state.come.iter().any(|at| at.nodes.part == part);
        let has_room = |part: usize| state.reading == Some(part) && !state.full;
        let complete = now.iter().all(|&part| has_room(part) || has_come(&state, part));
        let stays = |part: usize| now.contains(&part) || (complete && next.contains(&part));
        let left: Vec<_> = state.come.extract_if(.., |at| !stays(at.nodes.part)).collect();
        state.reading = state.reading.filter(|&part| stays(part));
        state.full &= state.reading.is_some();
        let wanted = now.iter().chain(next).copied();
        let begun = |part: usize| state.reading == Some(part) || has_come(&state, part);
        state.wanted = wanted.filter(|&part| !begun(part)).collect();
        drop(state);
        drop(left);
        // The reader may wait for the room of a part that nobody wants any more.
        self.rooms.look_again();
        self.shared.changed.notify_all();
    }

    /// Takes a part that is wanted; waits until it has come; none once rooms are closed. `tell` is called when one has come, and
    /// when there is no room for the next.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn take(&self, part: usize, tell: &dyn Fn(Coming)) -> Result<Option<Arc<LoadedPart>>> {
        let shared = &self.shared;
        let mut state = shared.lock();
        let mut told = false;
        loop {
            if let Some(at) = state.come.iter().position(|at| at.nodes.part == part) {
                let taken = state.come.swap_remove(at);
                drop(state);
                tell(Coming::Came);
                return Ok(Some(taken));
            }
            if let Some(error) = &state.failure {
                return Err(error.clone());
            }
            if state.ended {
                return Ok(None);
            }
            if state.full != told {
                told = state.full;
                drop(state);
                tell(if told { Coming::Full } else { Coming::Came });
                state = shared.lock();
                continue;
            }
            state = shared.wait(state);
        }
    }
}

impl Drop for Reader {
    /// Ends the thread; nobody waits for what it reads, which may take as long as a store is away.
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
        // It may wait for a room.
        self.rooms.close();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use gnarl_sample::PartNodes;

    use super::*;

    /// A reader into so many rooms, and the parts that it begins to read.
    fn reader(rooms: usize) -> (Reader, Rooms, Receiver<usize>) {
        let rooms = Rooms::new(rooms);
        let (begun, parts) = channel();
        let load = move |part, room| {
            _ = begun.send(part);
            if part == 13 {
                return Err(Error::invalid("part 13 is damaged"));
            }
            let nodes = PartNodes { part, ids: Vec::new(), degrees: Vec::new() };
            Ok(LoadedPart::new(nodes, Vec::new(), room))
        };
        (Reader::new(Box::new(load), &rooms).unwrap(), rooms, parts)
    }

    fn take(reader: &Reader, part: usize) -> Arc<LoadedPart> {
        reader.take(part, &|_| ()).unwrap().unwrap()
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn what_is_next_is_read_ahead_as_far_as_there_is_room() {
        let (reader, rooms, begun) = reader(3);
        reader.want(&[4, 2], &[7, 8]);
        let held = [take(&reader, 2), take(&reader, 4)];
        assert_eq!(held.each_ref().map(|at| at.nodes.part), [2, 4]);
        let read: Vec<usize> = (0..3).map(|_| begun.recv_timeout(LONG).unwrap()).collect();
        assert_eq!(read, [4, 2, 7]);
        // Part 8 waits for a room.
        assert!(begun.recv_timeout(Duration::from_millis(20)).is_err() && rooms.is_full());
        reader.want(&[7], &[8]);
        assert_eq!(take(&reader, 7).nodes.part, 7);
        drop(held);
        assert_eq!(begun.recv_timeout(LONG), Ok(8), "7 was not read again");
    }

    #[test]
    fn parts_that_nobody_wants_any_more_give_up_their_rooms() {
        let (reader, _rooms, begun) = reader(1);
        reader.want(&[], &[1, 2]);
        assert_eq!(begun.recv_timeout(LONG), Ok(1));
        // Part 1 has the room, and 2 waits for it.
        reader.want(&[3], &[2, 1]);
        assert_eq!(take(&reader, 3).nodes.part, 3);
        // Part 2 has come, and would be in the way of 4.
        assert_eq!(begun.recv_timeout(LONG), Ok(3));
        assert_eq!(begun.recv_timeout(LONG), Ok(2));
        reader.want(&[4], &[2]);
        assert_eq!(take(&reader, 4).nodes.part, 4);
    }

    #[test]
    fn whoever_waits_is_told_of_full_rooms_of_failures_and_of_the_end() {
        let (reader, rooms, _begun) = reader(1);
        reader.want(&[1], &[]);
        let held = Mutex::new(Some(take(&reader, 1)));
        reader.want(&[2], &[]);
        let told = Mutex::new(Vec::new());
        let tell = |coming| {
            told.lock().unwrap().push(coming);
            if coming == Coming::Full {
                held.lock().unwrap().take();
            }
        };
        let second = reader.take(2, &tell).unwrap().unwrap();
        assert!(second.nodes.part == 2 && told.lock().unwrap().contains(&Coming::Full));
        drop(second);
        reader.want(&[3], &[]);
        let third = take(&reader, 3);
        std::thread::scope(|scope| {
            reader.want(&[4], &[]);
            let fourth = scope.spawn(|| reader.take(4, &|_| ()).map(|at| at.is_some()));
            std::thread::sleep(Duration::from_millis(20));
            rooms.close();
            assert!(!fourth.join().unwrap().unwrap());
        });
        drop(third);

        let (reader, ..) = self::reader(1);
        reader.want(&[13], &[]);
        let error = reader.take(13, &|_| ()).unwrap_err();
        assert!(error.to_string().contains("part 13 is damaged"), "{error}");
    }
}
