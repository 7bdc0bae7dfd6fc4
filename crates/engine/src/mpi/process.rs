//! This process among those of the run: what it says to all of them, and hears of any.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gnarl_common::Result;
use mpi::topology::{Communicator, SimpleCommunicator};

use super::transfer::{FEW, Transfer, take};
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
    /// Ranks whose last message came; one that fails at the end sends two.
    parted: BTreeSet<usize>,
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
            drop(self.tell(ABORT, &state.known_failure()));
        }
    }

    /// Says that this rank is done, and waits for all others to say so; a little longer than the
    /// deadline, so that those who wait for this rank elsewhere can tell.
    ///
    /// # Errors
    /// If any rank knew of a failure when it was done, or comes too late.
    pub(super) fn part(&self) -> Result<()> {
        let start = Instant::now();
        let mut state = self.state();
        state.listen(self, "the end")?;
        let mut sending = self.tell(PART, &[]);
        loop {
            let all_parted = state.all_parted(self, &mut sending);
            // Also after the last message: it may bring a failure.
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

    /// Says that this rank is done and why it failed, and waits a little for others to come to their
    /// end too.
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

/// The rank that failed and its reason, in a message of [`Process::tell`]; none in an empty one.
fn failure(bytes: &[u8]) -> Option<(usize, String)> {
    let (rank, reason) = bytes.get(1..)?.split_first_chunk()?;
    Some((u32::from_le_bytes(*rank) as usize, String::from_utf8_lossy(reason).into_owned()))
}

impl State {
    /// The failure this rank knows of as a message of few bytes, empty if there is none.
    fn known_failure(&self) -> Vec<u8> {
        let Some((rank, reason)) = &self.failed else { return Vec::new() };
        let reason = &reason.as_bytes()[..reason.len().min(FEW)];
        [&(*rank as u32).to_le_bytes(), reason].concat()
    }

    /// An error if a rank gave up.
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

    /// Whether all others' last message came and this one's got through.
    fn all_parted(&mut self, process: &Process, sending: &mut Sending) -> bool {
        let world = SimpleCommunicator::world();
        while let Some((other, bytes)) = take(world.any_process(), PART) {
            self.parted.insert(other);
            // MPI orders messages of one tag alone: this one may overtake the reason to give up.
            self.failed = self.failed.take().or_else(|| failure(&bytes));
        }
        sending.iter_mut().for_each(|transfer| _ = transfer.look());
        sending.retain(|transfer| !transfer.is_done());
        self.parted.len() + 1 >= process.size && sending.is_empty()
    }
}
