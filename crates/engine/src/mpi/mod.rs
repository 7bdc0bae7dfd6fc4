//! Engine `mpi`: ranks are processes that `mpirun` starts, on one machine or many.
//!
//! Needs the cargo feature `mpi` and an MPI library; tested with Open MPI 4.1. Messages go from rank
//! to rank without blocking, so that no wait outlasts the deadline, also if a rank is gone.

mod exchange;
mod transfer;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::mpi::Threading;
use ::mpi::topology::{Communicator as _, SimpleCommunicator};
use gnarl_graph::{Error, Result};

use crate::communicator::{Communicator, add, check_outgoing};
use crate::failure::{another_length, caught, late, stopped};
use exchange::{Exchange, FEW, take};
use transfer::Transfer;

/// Tag of a rank's reason to give up.
const ABORT: i32 = 3;
/// Tag of a rank's last message.
const PART: i32 = 4;
/// How long a rank that failed waits for others to learn of it, and one that is done for errors of
/// others.
const FAREWELL: Duration = Duration::from_secs(5);
/// Most bytes that are summed by everyone: more are shared out.
const SMALL: usize = 1 << 15;

/// Runs `body` as this process's rank of those that `mpirun` started, and returns its result.
///
/// # Errors
/// `body`'s, a panic in it included, or [`gnarl_graph::Kind::Rank`] if another rank failed. The
/// process is then to exit with another code than 0: MPI is left as it is, as winding it up could
/// wait for ranks that are gone.
pub fn run<T>(deadline: Duration, body: impl FnOnce(&MpiRank) -> Result<T>) -> Result<T> {
    let begun = ::mpi::initialize_with_threading(Threading::Serialized);
    let (universe, threading) = begun.ok_or_else(|| Error::invalid("MPI was started before"))?;
    let world = SimpleCommunicator::world();
    let (rank, size) = (world.rank() as usize, world.size() as usize);
    let rank = MpiRank { rank, size, deadline, state: Mutex::default() };
    let body = || match threading < Threading::Serialized {
        true => Err(Error::invalid("this MPI library does not allow threads")),
        false => body(&rank),
    };
    let result = caught(rank.rank, body).and_then(|value| rank.part().map(|()| value));
    if let Err(e) = &result {
        rank.abort(&e.to_string());
        rank.linger();
        std::mem::forget(universe);
    }
    result
}

/// A rank of the MPI engine.
pub struct MpiRank {
    rank: usize,
    size: usize,
    deadline: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Exchanges so far.
    exchanges: u64,
    /// The rank that gave up first, as far as this one knows, and why.
    failed: Option<(usize, String)>,
    /// Ranks whose last message came.
    parted: Vec<usize>,
}

/// Messages on their way.
type Sending = Vec<Transfer<Arc<Vec<u8>>>>;

impl MpiRank {
    /// Whoever holds this may talk to MPI.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let rank = self.rank;
        (0..self.size).filter(move |&other| other != rank)
    }

    /// Sends the same few bytes to all others.
    fn tell(&self, tag: i32, what: &[u8]) -> Sending {
        // No message would be empty in frames.
        let bytes = Arc::new([&[0], what].concat());
        self.others().map(|other| Transfer::send(other as i32, tag, bytes.clone())).collect()
    }

    /// Sends `outgoing[r]` to each rank `r`, and returns what each sent here.
    fn exchange(&self, stage: &str, outgoing: &[Arc<Vec<u8>>]) -> Result<Vec<Vec<u8>>> {
        let mut state = self.state();
        state.exchanges += 1;
        let (rank, number) = (self.rank, state.exchanges);
        let exchange = Exchange { rank, stage, number, deadline: self.deadline };
        exchange.run(outgoing, || state.listen(self, stage))
    }

    /// Replaces `values` by the sum of what all ranks brought, in rank order.
    fn sum(&self, stage: &str, all: &[Vec<u8>], values: &mut [f32]) -> Result<()> {
        if let Some(other) = all.iter().position(|b| b.len() != size_of_val(values)) {
            return Err(another_length(other, stage));
        }
        values.fill(0.0);
        all.iter().for_each(|bytes| add(values, bytes));
        Ok(())
    }

    /// Says that this rank is done, and waits for all others to say so; a little longer than the
    /// deadline, so that those who wait for this rank elsewhere can tell.
    fn part(&self) -> Result<()> {
        let start = Instant::now();
        let mut state = self.state();
        let mut sending = self.tell(PART, &[]);
        while !state.all_parted(self, &mut sending) {
            state.listen(self, "the end")?;
            if start.elapsed() >= self.deadline + FAREWELL {
                let missing = self.others().filter(|other| !state.parted.contains(other));
                return Err(late(self.rank, "the end", self.deadline, missing));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// Says that this rank is done, and waits a little for others to come to their end too.
    fn linger(&self) {
        let start = Instant::now();
        let mut state = self.state();
        let mut sending = self.tell(PART, &[]);
        while !state.all_parted(self, &mut sending) && start.elapsed() < FAREWELL.min(self.deadline)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl State {
    /// An error if a rank gave up.
    fn listen(&mut self, rank: &MpiRank, stage: &str) -> Result<()> {
        if self.failed.is_none() {
            let message = take(SimpleCommunicator::world().any_process(), ABORT);
            let text = |reason: Vec<u8>| String::from_utf8_lossy(&reason[1..]).into_owned();
            self.failed = message.map(|(other, reason)| (other, text(reason)));
        }
        match &self.failed {
            Some((failed, reason)) => Err(stopped(rank.rank, stage, *failed, reason)),
            None => Ok(()),
        }
    }

    /// Whether all others' last message came and this one's got through.
    fn all_parted(&mut self, rank: &MpiRank, sending: &mut Sending) -> bool {
        let world = SimpleCommunicator::world();
        let parted = std::iter::from_fn(|| take(world.any_process(), PART));
        self.parted.extend(parted.map(|(other, _)| other));
        sending.iter_mut().for_each(|transfer| _ = transfer.look());
        sending.retain(|transfer| !transfer.is_done());
        self.parted.len() + 1 >= rank.size && sending.is_empty()
    }
}

impl Communicator for MpiRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&self, stage: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let bytes = Arc::new(bytes.to_vec());
        let all: Vec<_> = (0..self.size).map(|_| bytes.clone()).collect();
        self.exchange(stage, &all)
    }

    fn all_to_all(&self, stage: &str, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        check_outgoing(&outgoing, self.size, stage)?;
        let outgoing: Vec<_> = outgoing.into_iter().map(Arc::new).collect();
        self.exchange(stage, &outgoing)
    }

    /// Every rank adds up a share of the values, in rank order, and gives its sums to all.
    fn all_reduce_sum(&self, stage: &str, values: &mut [f32]) -> Result<()> {
        if self.size == 1 {
            return Ok(());
        }
        if size_of_val(values) <= SMALL {
            let all = self.all_gather(stage, bytemuck::cast_slice(values))?;
            return self.sum(stage, &all, values);
        }
        let share = values.len().div_ceil(self.size);
        let bytes = |share: &[f32]| Arc::new(bytemuck::cast_slice(share).to_vec());
        let mut shares: Vec<_> = values.chunks(share).map(bytes).collect();
        shares.resize(self.size, Arc::default());
        let mut sums = vec![0.0; shares[self.rank].len() / size_of::<f32>()];
        self.sum(stage, &self.exchange(stage, &shares)?, &mut sums)?;
        let all = self.all_gather(stage, bytemuck::cast_slice(&sums))?;
        for ((rank, values), bytes) in values.chunks_mut(share).enumerate().zip(&all) {
            if bytes.len() != size_of_val(values) {
                return Err(another_length(rank, stage));
            }
            bytemuck::cast_slice_mut(values).copy_from_slice(bytes);
        }
        Ok(())
    }

    fn abort(&self, reason: &str) {
        let mut state = self.state();
        if state.failed.is_none() {
            state.failed = Some((self.rank, reason.into()));
            // Few bytes leave at once; waiting for more could last for ever.
            drop(self.tell(ABORT, &reason.as_bytes()[..reason.len().min(FEW)]));
        }
    }
}
