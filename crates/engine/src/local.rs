//! Engine `local`: ranks are threads of one process. Nothing to install.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use gnarl_graph::Result;

use crate::communicator::{Communicator, add, check_outgoing};
use crate::failure::{another_length, apart, caught, late, rank_error, stopped};

/// Runs `body` once for each rank, on a thread each, and returns the results in rank order.
///
/// # Errors
/// The first rank's error, by time; the others stop waiting and end as well. A rank that panics
/// counts as failed.
pub fn run<T: Send>(
    size: usize,
    deadline: Duration,
    body: impl Fn(&LocalRank) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let hub = Arc::new(Hub::new(size, deadline));
    let results: Vec<Result<T>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..size)
            .map(|rank| {
                let (hub, body) = (hub.clone(), &body);
                let thread = std::thread::Builder::new().name(format!("rank-{rank}"));
                thread.spawn_scoped(scope, move || guarded(&LocalRank { rank, hub }, body))
            })
            .collect();
        let joined = handles.into_iter().enumerate().map(|(rank, handle)| match handle {
            Ok(handle) => handle.join().unwrap_or_else(|_| Err(rank_error(rank, "panicked"))),
            Err(e) => {
                hub.fail(rank, &format!("cannot start a thread: {e}"));
                Err(rank_error(rank, &format!("cannot start a thread: {e}")))
            }
        });
        joined.collect()
    });
    let first = hub.lock().failed.as_ref().map(|(rank, _)| *rank);
    let mut results: Vec<Option<Result<T>>> = results.into_iter().map(Some).collect();
    if let Some(rank) = first
        && let Some(Err(e)) = results[rank].take()
    {
        return Err(e);
    }
    results.into_iter().flatten().collect()
}

fn guarded<T>(rank: &LocalRank, body: impl Fn(&LocalRank) -> Result<T>) -> Result<T> {
    let result = caught(rank.rank, || body(rank));
    if let Err(e) = &result {
        rank.hub.fail(rank.rank, &e.to_string());
    }
    result
}

/// What the ranks share.
struct Hub {
    size: usize,
    deadline: Duration,
    state: Mutex<State>,
    wake: Condvar,
}

/// What a rank brings: the same for all, or something for each.
type Deposit = Arc<Vec<Vec<u8>>>;

#[derive(Default)]
struct State {
    /// Completed exchanges.
    generation: u64,
    stage: String,
    slots: Vec<Option<Deposit>>,
    published: Arc<Vec<Deposit>>,
    failed: Option<(usize, String)>,
}

impl Hub {
    fn new(size: usize, deadline: Duration) -> Self {
        let state = State { slots: vec![None; size], ..State::default() };
        Self { size, deadline, state: Mutex::new(state), wake: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned lock means a rank panicked while holding it; the state is still whole
        // because every update below is a single assignment.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn fail(&self, rank: usize, reason: &str) {
        self.lock().failed.get_or_insert_with(|| (rank, reason.into()));
        self.wake.notify_all();
    }

    /// Everyone deposits, everyone receives all deposits.
    fn exchange(
        &self,
        rank: usize,
        stage: &str,
        brought: Vec<Vec<u8>>,
    ) -> Result<Arc<Vec<Deposit>>> {
        let start = Instant::now();
        let mut state = self.lock();
        if state.slots.iter().all(Option::is_none) {
            state.stage = stage.into();
        } else if state.stage != stage {
            return Err(apart(rank, stage, &state.stage));
        }
        state.slots[rank] = Some(Arc::new(brought));
        let generation = state.generation;
        if state.slots.iter().all(Option::is_some) {
            state.published = Arc::new(state.slots.iter_mut().filter_map(Option::take).collect());
            state.generation += 1;
            self.wake.notify_all();
            return Ok(state.published.clone());
        }
        while state.generation == generation {
            if let Some((failed, reason)) = &state.failed {
                return Err(stopped(rank, stage, *failed, reason));
            }
            let left = self.deadline.saturating_sub(start.elapsed());
            if left.is_zero() {
                let missing = (0..self.size).filter(|&r| state.slots[r].is_none());
                return Err(late(rank, stage, self.deadline, missing));
            }
            state = match self.wake.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        // Nobody can publish again before this rank comes to the next exchange.
        Ok(state.published.clone())
    }
}

/// A rank of the local engine.
pub struct LocalRank {
    rank: usize,
    hub: Arc<Hub>,
}

impl Communicator for LocalRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.hub.size
    }

    fn all_gather(&self, stage: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let all = self.hub.exchange(self.rank, stage, vec![bytes.to_vec()])?;
        Ok(all.iter().map(|brought| brought[0].clone()).collect())
    }

    fn all_to_all(&self, stage: &str, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        check_outgoing(&outgoing, self.hub.size, stage)?;
        let all = self.hub.exchange(self.rank, stage, outgoing)?;
        Ok(all.iter().map(|brought| brought[self.rank].clone()).collect())
    }

    fn all_reduce_sum(&self, stage: &str, values: &mut [f32]) -> Result<()> {
        if self.hub.size == 1 {
            return Ok(());
        }
        let all =
            self.hub.exchange(self.rank, stage, vec![bytemuck::cast_slice(values).to_vec()])?;
        if let Some(other) = all.iter().position(|b| b[0].len() != size_of_val(values)) {
            return Err(another_length(other, stage));
        }
        values.fill(0.0);
        all.iter().for_each(|brought| add(values, &brought[0]));
        Ok(())
    }

    fn abort(&self, reason: &str) {
        self.hub.fail(self.rank, reason);
    }
}
