//! Per-process MPI state: control messages broadcast to and received from all ranks.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gnarl_common::Result;
use mpi::topology::{Communicator, SimpleCommunicator};

use super::transfer::{FEW, Transfer, take};
use crate::failure::{late, stopped};

/// Tag of a rank's reason to abort.
const ABORT: i32 = 0;
/// Tag of a rank's last message.
const PART: i32 = 1;
/// Time that a failed rank waits for others to learn of it, and a finished one for errors of
/// others.
const FAREWELL: Duration = Duration::from_secs(5);

/// The process of a rank, whatever groups it is in.
pub(super) struct Process {
    /// Rank in the run.
    pub(super) rank: usize,
    size: usize,
    pub(super) deadline: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    /// Number of the last group joined.
    pub(super) groups: u64,
    /// The first rank that failed, as far as known here, and its reason.
    failed: Option<(usize, String)>,
    /// Ranks whose last message arrived; one that fails at the end sends two.
    parted: BTreeSet<usize>,
}

/// Outgoing messages.
type Sending = Vec<Transfer<Arc<Vec<u8>>>>;

impl Process {
    pub(super) fn new(rank: usize, size: usize, deadline: Duration) -> Self {
        Self { rank, size, deadline, state: Mutex::default() }
    }

    /// Locks the state; only the holder may call MPI.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let rank = self.rank;
        (0..self.size).filter(move |&other| other != rank)
    }

    /// Sends the same few bytes to all other ranks.
    fn tell(&self, tag: i32, what: &[u8]) -> Sending {
        // An empty message would have no frame.
        let bytes = Arc::new([&[0], what].concat());
        self.others().map(|other| Transfer::send(other as i32, tag, bytes.clone())).collect()
    }

    /// Tells all other ranks that this one aborts.
    pub(super) fn abort(&self, reason: &str) {
        let mut state = self.state();
        if state.failed.is_none() {
            state.failed = Some((self.rank, reason.into()));
            // Short messages leave at once; waiting for long ones could block forever.
            drop(self.tell(ABORT, &state.known_failure()));
        }
    }

    /// Announces that this rank is done, and waits for all others to do so; a little longer than
    /// the deadline, so that ranks that wait for this one elsewhere report it first.
    ///
    /// # Errors
    /// If any rank knew of a failure when it was done, or arrives too late.
    pub(super) fn part(&self) -> Result<()> {
        let start = Instant::now();
        let mut state = self.state();
        state.listen(self, "the end")?;
        let mut sending = self.tell(PART, &[]);
        loop {
            let all_parted = state.all_parted(self, &mut sending);
            // Also after the last message, which may report a failure.
            state.listen(self, "the end")?;
            if all_parted {
                return Ok(());
            }
            if start.elapsed() >= self.deadline + FAREWELL {
                let missing = self.others().filter(|other| !state.parted.contains(other));
                return Err(late(self.rank, "the end", self.deadline, missing));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Announces that this rank is done and why it failed, and waits a little for others to end
    /// too.
    pub(super) fn linger(&self) {
        let start = Instant::now();
        let mut state = self.state();
        let mut sending = self.tell(PART, &state.known_failure());
        while !state.all_parted(self, &mut sending) && start.elapsed() < FAREWELL.min(self.deadline)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Decodes the failed rank and its reason from a message of [`Process::tell`]; none if empty.
fn failure(bytes: &[u8]) -> Option<(usize, String)> {
    let (rank, reason) = bytes.get(1..)?.split_first_chunk()?;
    Some((u32::from_le_bytes(*rank) as usize, String::from_utf8_lossy(reason).into_owned()))
}

impl State {
    /// Encodes the known failure as a short message, empty if there is none.
    fn known_failure(&self) -> Vec<u8> {
        let Some((rank, reason)) = &self.failed else { return Vec::new() };
        let reason = &reason.as_bytes()[..reason.len().min(FEW)];
        [&(*rank as u32).to_le_bytes(), reason].concat()
    }

    /// Receives control messages; returns an error if a rank failed.
    pub(super) fn listen(&mut self, process: &Process, stage: &str) -> Result<()> {
        if self.failed.is_none() {
            let message = take(SimpleCommunicator::world().any_process(), ABORT);
            self.failed = message.and_then(|(_, bytes)| failure(&bytes));
        }
        match &self.failed {
            Some((failed, reason)) => Err(stopped(process.rank, stage, *failed, reason)),
            None => Ok(()),
        }
    }

    /// Returns whether the last messages of all others arrived and this rank's were delivered.
    fn all_parted(&mut self, process: &Process, sending: &mut Sending) -> bool {
        let world = SimpleCommunicator::world();
        while let Some((other, bytes)) = take(world.any_process(), PART) {
            self.parted.insert(other);
            // MPI orders messages of one tag only: the last message may overtake the reason of an
            // abort.
            self.failed = self.failed.take().or_else(|| failure(&bytes));
        }
        sending.iter_mut().for_each(|transfer| _ = transfer.look());
        sending.retain(|transfer| !transfer.is_done());
        self.parted.len() + 1 >= process.size && sending.is_empty()
    }
}
