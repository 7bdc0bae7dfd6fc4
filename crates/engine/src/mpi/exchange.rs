//! All-to-all exchange of bytes, with a deadline.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gnarl_common::{Error, Result};
use mpi::topology::{Communicator, SimpleCommunicator};

use super::process::Process;
use super::transfer::{FEW, Transfer, take};
use crate::failure::{apart, late};

/// Time to poll for messages without a pause, and the length of a pause: ranks may share cores with
/// each other, with their servers, and with other processes.
const EAGER: Duration = Duration::from_micros(200);
const PAUSE: Duration = Duration::from_micros(100);

/// The receiving state of a rank's bytes.
enum Arrival {
    Awaited,
    Coming(Transfer<Vec<u8>>),
    Here(Vec<u8>),
}

/// The message tags of a group, which no other group uses.
#[derive(Clone, Copy)]
pub(super) struct Tags {
    /// Of heads: the sender's stage, the message length, and short messages themselves.
    head: i32,
    /// Of bytes that did not fit in a head.
    body: i32,
}

/// The last group with tags: MPI guarantees tags up to 32 767.
pub(super) const LAST_GROUP: u64 = (1 << 14) - 2;

impl Tags {
    /// The tags of the run's group `number`, at most [`LAST_GROUP`].
    pub(super) fn of(number: u64) -> Self {
        let head = 2 * number as i32 + 2;
        Self { head, body: head + 1 }
    }
}

/// One exchange, with equal `number` and `stage` on every rank of a group.
pub(super) struct Exchange<'a> {
    pub(super) process: &'a Process,
    /// Ranks of the members in the run.
    pub(super) members: &'a [usize],
    pub(super) tags: Tags,
    /// This rank in the group.
    pub(super) rank: usize,
    pub(super) stage: &'a str,
    pub(super) number: u64,
}

impl Exchange<'_> {
    /// Sends `outgoing[r]` to each rank `r` of the group, and returns the bytes received from each.
    pub(super) fn run(&self, outgoing: &[Arc<Vec<u8>>]) -> Result<Vec<Vec<u8>>> {
        let start = Instant::now();
        let process = self.process;
        let mut arrivals: Vec<Arrival> = outgoing.iter().map(|_| Arrival::Awaited).collect();
        arrivals[self.rank] = Arrival::Here(outgoing[self.rank].to_vec());
        let mut state = process.state();
        // A rank that knows of a failure sends nothing more, or others could complete their
        // exchange.
        state.listen(process, self.stage)?;
        let mut sending = self.send(outgoing);
        let mut progress = start;
        loop {
            let mut moved = sending.iter_mut().map(Transfer::look).sum::<usize>();
            sending.retain(|transfer| !transfer.is_done());
            for (from, arrival) in arrivals.iter_mut().enumerate() {
                moved += self.advance(from, arrival)?;
            }
            let here = |a: &Arrival| matches!(a, Arrival::Here(_));
            // Checked before the exchange: one that was completed is lost with the run.
            state.listen(process, self.stage)?;
            if sending.is_empty() && arrivals.iter().all(here) {
                return Ok(arrivals.into_iter().filter_map(Arrival::bytes).collect());
            }
            // Releases the lock to threads that wait in other groups.
            drop(state);
            let now = Instant::now();
            if now - start >= process.deadline {
                let awaited = arrivals.iter().zip(self.members).filter(|(a, _)| !here(a));
                let missing = awaited.map(|(_, &number)| number);
                return Err(late(process.rank, self.stage, process.deadline, missing));
            }
            if moved > 0 {
                progress = now;
            }
            if now - progress < EAGER {
                std::thread::yield_now()
            } else {
                std::thread::sleep(PAUSE)
            }
            state = process.state();
        }
    }

    /// Starts to send to all other ranks, beginning with the next one, so that no rank is
    /// everyone's first.
    fn send(&self, outgoing: &[Arc<Vec<u8>>]) -> Vec<Transfer<Arc<Vec<u8>>>> {
        let size = outgoing.len();
        let mut sending = Vec::new();
        for to in (self.rank + 1..self.rank + size).map(|r| r % size) {
            let bytes = &outgoing[to];
            let mut head = self.number.to_le_bytes().to_vec();
            head.extend((bytes.len() as u64).to_le_bytes());
            head.extend((self.stage.len() as u64).to_le_bytes());
            head.extend(self.stage.as_bytes());
            if bytes.len() <= FEW {
                head.extend(bytes.as_slice());
            }
            let number = self.members[to] as i32;
            sending.push(Transfer::send(number, self.tags.head, Arc::new(head)));
            if bytes.len() > FEW {
                sending.push(Transfer::send(number, self.tags.body, bytes.clone()));
            }
        }
        sending
    }

    /// Receives available bytes from rank `from`; returns their number.
    fn advance(&self, from: usize, arrival: &mut Arrival) -> Result<usize> {
        match arrival {
            Arrival::Here(_) => Ok(0),
            Arrival::Awaited => {
                let world = SimpleCommunicator::world();
                let number = self.members[from];
                let head = take(world.process_at_rank(number as i32), self.tags.head);
                let Some((_, head)) = head else { return Ok(0) };
                *arrival = self.open(number, &head)?;
                Ok(1)
            }
            Arrival::Coming(transfer) => {
                let moved = transfer.look();
                if transfer.is_done() {
                    let done = std::mem::replace(arrival, Arrival::Awaited);
                    let Arrival::Coming(transfer) = done else { return Ok(moved) };
                    *arrival = Arrival::Here(transfer.into_buffer());
                }
                Ok(moved)
            }
        }
    }

    /// The receiving state after the `head` of rank `from` of the run.
    fn open(&self, from: usize, head: &[u8]) -> Result<Arrival> {
        let damaged = || Error::invalid(format!("rank {from} sent a damaged message"));
        let (numbers, rest) = head.split_first_chunk::<24>().ok_or_else(damaged)?;
        let number = |i: usize| u64::from_le_bytes(numbers.as_chunks().0[i]);
        let (stage, bytes) = rest.split_at_checked(number(2) as usize).ok_or_else(damaged)?;
        let stage = String::from_utf8_lossy(stage);
        if stage != self.stage || number(0) != self.number {
            return Err(apart(from, &stage, self.stage));
        }
        let length = number(1) as usize;
        if length > FEW {
            return Ok(Arrival::Coming(Transfer::receive(from as i32, self.tags.body, length)));
        }
        Ok(Arrival::Here(bytes.to_vec()))
    }
}

impl Arrival {
    fn bytes(self) -> Option<Vec<u8>> {
        if let Self::Here(bytes) = self { Some(bytes) } else { None }
    }
}
