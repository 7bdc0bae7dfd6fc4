//! This process among those of the run: what it says to all of them, and hears of any.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gnarl_graph::Result;
use mpi::topology::{Communicator, SimpleCommunicator};

use super::exchange::{FEW, take};
use super::transfer::Transfer;
use crate::failure::{late, stopped};

/// Tag of a rank's reason to give up.
const ABORT: i32 = 0;
/// Tag of a rank's last message.
const PART: i32 = 1;
/// How long a rank that failed waits for others to learn of it, and one that is done for errors of
/// others.
const FAREWELL: Duration = Duration::from_secs(5);

/// A process, whatever groups its rank is in.
pub(super) struct Process {
    /// The rank's number in the run.
    pub(super) rank: usize,
    size: usize,
    pub(super) deadline: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    /// The last group it has been in.
    pub(super) groups: u64,
    /// The rank that gave up first, as far as this one knows, and why.
    failed: Option<(usize, String)>,
    /// Ranks whose last message came.
    parted: Vec<usize>,
}

/// Messages on their way.
type Sending = Vec<Transfer<Arc<Vec<u8>>>>;

impl Process {
    pub(super) fn new(rank: usize, size: usize, deadline: Duration) -> Self {
        Self { rank, size, deadline, state: Mutex::default() }
    }

    /// Whoever holds this may talk to MPI.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
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

    /// Tells all others that this rank gives up.
    pub(super) fn abort(&self, reason: &str) {
        let mut state = self.state();
        if state.failed.is_none() {
            state.failed = Some((self.rank, reason.into()));
            // Few bytes leave at once; waiting for more could last for ever.
            drop(self.tell(ABORT, &reason.as_bytes()[..reason.len().min(FEW)]));
        }
    }

    /// Says that this rank is done, and waits for all others to say so; a little longer than the
    /// deadline, so that those who wait for this rank elsewhere can tell.
    pub(super) fn part(&self) -> Result<()> {
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
    pub(super) fn linger(&self) {
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
    pub(super) fn listen(&mut self, process: &Process, stage: &str) -> Result<()> {
        if self.failed.is_none() {
            let message = take(SimpleCommunicator::world().any_process(), ABORT);
            let text = |reason: Vec<u8>| String::from_utf8_lossy(&reason[1..]).into_owned();
            self.failed = message.map(|(other, reason)| (other, text(reason)));
        }
        match &self.failed {
            Some((failed, reason)) => Err(stopped(process.rank, stage, *failed, reason)),
            None => Ok(()),
        }
    }

    /// Whether all others' last message came and this one's got through.
    fn all_parted(&mut self, process: &Process, sending: &mut Sending) -> bool {
        let world = SimpleCommunicator::world();
        let parted = std::iter::from_fn(|| take(world.any_process(), PART));
        self.parted.extend(parted.map(|(other, _)| other));
        sending.iter_mut().for_each(|transfer| _ = transfer.look());
        sending.retain(|transfer| !transfer.is_done());
        self.parted.len() + 1 >= process.size && sending.is_empty()
    }
}
