//! Engine `local`: ranks are threads of one process, without further dependencies.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use gnarl_common::{Error, Result, profile};

use crate::communicator::{Communicator, add, check_outgoing};
use crate::failure::{another_length, apart, caught, late, rank_error, stopped};
use crate::group;

/// Runs `body` once per rank, on a thread each, and returns the results in rank order.
///
/// # Errors
/// The first rank's error, by time; the others stop waiting and end as well. A rank that panics
/// counts as failed.
pub fn run<T: Send>(
    size: usize,
    deadline: Duration,
    body: impl Fn(&LocalRank) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let shared = Arc::new(Run { deadline, failed: OnceLock::new(), rooms: Mutex::default() });
    let room = shared.room((0..size).collect());
    let results: Vec<Result<T>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..size)
            .map(|rank| {
                let run = shared.clone();
                let room = room.clone();
                let body = &body;
                let thread = std::thread::Builder::new().name(format!("rank-{rank}"));
                let body = move || guarded(&LocalRank { rank, run, room }, body);
                thread.spawn_scoped(scope, body).map_err(|e| {
                    let reason = format!("cannot start a thread: {e}");
                    // Unblocks the ranks started before.
                    shared.fail(rank, &reason);
                    rank_error(rank, &reason)
                })
            })
            .collect();
        let joined = handles.into_iter().enumerate().map(|(rank, handle)| {
            handle?.join().unwrap_or_else(|_| Err(rank_error(rank, "panicked")))
        });
        joined.collect()
    });
    if let Some((rank, reason)) = shared.failed.get() {
        let own = results.into_iter().nth(*rank).and_then(Result::err);
        // `body` may have aborted the run and still returned a value.
        return Err(own.unwrap_or_else(|| stopped(*rank, "the end", *rank, reason)));
    }
    results.into_iter().collect()
}

fn guarded<T>(rank: &LocalRank, body: impl Fn(&LocalRank) -> Result<T>) -> Result<T> {
    profile::set_rank(rank.rank);
    let result = caught(rank.rank, || body(rank));
    if let Err(e) = &result {
        rank.run.fail(rank.rank, &e.to_string());
    }
    result
}

/// State shared by all ranks of a run, whatever groups they are in.
struct Run {
    deadline: Duration,
    /// The first rank that failed, and its reason.
    failed: OnceLock<(usize, String)>,
    /// Rooms in which ranks may be waiting.
    rooms: Mutex<Vec<Weak<Room>>>,
}

/// The rendezvous of the ranks of a group.
struct Room {
    /// Ranks of the members in the run.
    members: Vec<usize>,
    state: Mutex<State>,
    wake: Condvar,
}

/// The contribution of a rank: one for all, or one per rank.
type Deposit = Arc<Vec<Vec<u8>>>;

#[derive(Default)]
struct State {
    /// Completed exchanges.
    generation: u64,
    stage: String,
    slots: Vec<Option<Deposit>>,
    published: Arc<Vec<Deposit>>,
    /// Rooms of the groups split off after an exchange, by its number and their color, with the
    /// number of their ranks that have not entered yet.
    split: BTreeMap<(u64, u64), (Arc<Room>, usize)>,
}

/// A poisoned lock means a rank panicked while holding it; the guarded state is still consistent
/// because every update below is a single assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run {
    /// A room for these ranks of the run.
    fn room(&self, members: Vec<usize>) -> Arc<Room> {
        let state = State { slots: vec![None; members.len()], ..State::default() };
        let room = Arc::new(Room { members, state: Mutex::new(state), wake: Condvar::new() });
        let mut rooms = lock(&self.rooms);
        rooms.retain(|room| room.strong_count() > 0);
        rooms.push(Arc::downgrade(&room));
        room
    }

    /// Returns an error if a rank failed: from then on no exchange begins or succeeds in any group.
    fn check(&self, rank: usize, stage: &str) -> Result<()> {
        let failed = self.failed.get();
        failed.map_or(Ok(()), |(failed, reason)| Err(stopped(rank, stage, *failed, reason)))
    }

    /// Marks the run as failed, without waking waiting ranks.
    fn mark_failed(&self, rank: usize, reason: &str) {
        // Only the first failure is kept: later ones are its consequences.
        _ = self.failed.set((rank, reason.into()));
    }

    fn fail(&self, rank: usize, reason: &str) {
        self.mark_failed(rank, reason);
        self.wake_all();
    }

    /// Wakes the waiting ranks of all groups, so that they see a failure.
    fn wake_all(&self) {
        let rooms: Vec<_> = lock(&self.rooms).iter().filter_map(Weak::upgrade).collect();
        for room in rooms {
            // Taking the lock ensures that a rank about to wait either sees the failure or is
            // woken.
            drop(lock(&room.state));
            room.wake.notify_all();
        }
    }
}

/// A rank of the local engine, in one of its groups.
pub struct LocalRank {
    rank: usize,
    run: Arc<Run>,
    room: Arc<Room>,
}

impl LocalRank {
    /// Rank in the run.
    fn number(&self) -> usize {
        self.room.members[self.rank]
    }

    /// An exchange of deposits among all ranks; an error ends the run.
    fn exchange(&self, stage: &str, brought: Vec<Vec<u8>>) -> Result<Arc<Vec<Deposit>>> {
        self.meet(stage, brought).inspect_err(|_| self.run.wake_all())
    }

    /// An exchange whose errors are visible to all ranks that enter the room after it.
    fn meet(&self, stage: &str, brought: Vec<Vec<u8>>) -> Result<Arc<Vec<Deposit>>> {
        let start = Instant::now();
        let run = &self.run;
        let room = &self.room;
        let mut state = lock(&room.state);
        // A rank that knows of a failure must not complete an exchange that others began before it:
        // they would find all deposits there when they wake, and succeed.
        run.check(self.number(), stage)?;
        // Marked before the lock is released, lest the next rank complete the exchange.
        let failing = |e: Error| {
            run.mark_failed(self.number(), &e.to_string());
            e
        };
        if state.slots.iter().all(Option::is_none) {
            state.stage = stage.into();
        } else if state.stage != stage {
            return Err(failing(apart(self.number(), stage, &state.stage)));
        }
        state.slots[self.rank] = Some(Arc::new(brought));
        let generation = state.generation;
        if state.slots.iter().all(Option::is_some) {
            state.published = Arc::new(state.slots.iter_mut().filter_map(Option::take).collect());
            state.generation += 1;
            room.wake.notify_all();
            return Ok(state.published.clone());
        }
        loop {
            // Checked before the exchange: one that was completed is lost with the run.
            run.check(self.number(), stage)?;
            if state.generation != generation {
                // No later exchange can be published before this rank takes part in it.
                return Ok(state.published.clone());
            }
            let left = run.deadline.saturating_sub(start.elapsed());
            if left.is_zero() {
                let absent = state.slots.iter().zip(&room.members).filter(|(s, _)| s.is_none());
                let missing = absent.map(|(_, &number)| number);
                return Err(failing(late(self.number(), stage, run.deadline, missing)));
            }
            state = match room.wake.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// The room of the `members` of this group with `color` in the last exchange.
    fn room_of(&self, color: u64, members: &[usize]) -> Arc<Room> {
        let mut state = lock(&self.room.state);
        let split = (state.generation, color);
        let (room, left) = state.split.entry(split).or_insert_with(|| {
            let numbers = members.iter().map(|&member| self.room.members[member]).collect();
            (self.run.room(numbers), members.len())
        });
        let room = room.clone();
        *left -= 1;
        if *left == 0 {
            state.split.remove(&split);
        }
        room
    }
}

impl Communicator for LocalRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.room.members.len()
    }

    fn all_gather(&self, stage: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let all = self.exchange(stage, vec![bytes.to_vec()])?;
        Ok(all.iter().map(|brought| brought[0].clone()).collect())
    }

    fn all_to_all(&self, stage: &str, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        check_outgoing(&outgoing, self.size(), stage)?;
        let all = self.exchange(stage, outgoing)?;
        Ok(all.iter().map(|brought| brought[self.rank].clone()).collect())
    }

    fn all_reduce_sum(&self, stage: &str, values: &mut [f32]) -> Result<()> {
        if self.size() == 1 {
            return self.run.check(self.number(), stage);
        }
        let all = self.exchange(stage, vec![bytemuck::cast_slice(values).to_vec()])?;
        if let Some(other) = all.iter().position(|b| b[0].len() != size_of_val(values)) {
            return Err(another_length(self.room.members[other], stage));
        }
        values.fill(0.0);
        all.iter().for_each(|brought| add(values, &brought[0]));
        Ok(())
    }

    fn split(&self, stage: &str, color: usize, key: usize) -> Result<Box<dyn Communicator + '_>> {
        let choice = [color as u64, key as u64];
        let all = group::numbers(stage, &self.all_gather(stage, &group::message(choice))?)?;
        let members = group::members(all.into_iter().map(|[color, key]| (color, key)), choice[0]);
        let room = self.room_of(choice[0], &members);
        let rank = members.iter().position(|&member| member == self.rank);
        let rank = rank.expect("a rank is in its group");
        Ok(Box::new(LocalRank { rank, run: self.run.clone(), room }))
    }

    fn abort(&self, reason: &str) {
        self.run.fail(self.number(), reason);
    }
}
