//! Engine `mpi`: ranks are processes started by `mpirun`, on one machine or many.
//!
//! Needs the cargo feature `mpi` and an MPI library; tested with Open MPI 4.1. Messages are
//! nonblocking, so that no wait outlasts the deadline, even if a rank is gone.

mod exchange;
mod process;
mod transfer;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::mpi::Threading;
use ::mpi::topology::{Communicator as _, SimpleCommunicator};
use gnarl_common::{Error, Kind, Result, profile};

use crate::communicator::{Communicator, add, check_outgoing};
use crate::failure::{another_length, caught};
use crate::group;
use exchange::{Exchange, LAST_GROUP, Tags};
use process::Process;

/// Most bytes that every rank sums itself; the sum of longer values is split among ranks.
const SMALL: usize = 1 << 15;

/// Runs `body` as this process's rank of those started by `mpirun`, and returns its result.
///
/// # Errors
/// `body`'s, a panic in it included, or [`gnarl_common::Kind::Rank`] if another rank failed. The
/// process must then exit with a nonzero code: MPI is not finalized, as that could wait for ranks
/// that are gone.
pub fn run<T>(deadline: Duration, body: impl FnOnce(&MpiRank) -> Result<T>) -> Result<T> {
    let begun = ::mpi::initialize_with_threading(Threading::Serialized);
    let (universe, threading) =
        begun.ok_or_else(|| Error::invalid("MPI is already initialized"))?;
    let world = SimpleCommunicator::world();
    let (rank, size) = (world.rank() as usize, world.size() as usize);
    profile::set_rank(rank);
    let process = Arc::new(Process::new(rank, size, deadline));
    let all = MpiRank {
        process: process.clone(),
        members: (0..size).collect(),
        rank,
        tags: Tags::of(0),
        exchanges: Mutex::new(0),
    };
    let body = || match threading < Threading::Serialized {
        true => Err(Error::invalid("the MPI library does not support threads")),
        false => body(&all),
    };
    let result = caught(rank, body).and_then(|value| process.part().map(|()| value));
    if let Err(e) = &result {
        process.abort(&e.to_string());
        process.linger();
        std::mem::forget(universe);
    }
    result
}

/// A rank of the MPI engine, in one of its groups.
pub struct MpiRank {
    process: Arc<Process>,
    /// Ranks of the members in the run.
    members: Vec<usize>,
    rank: usize,
    tags: Tags,
    /// Number of exchanges of the group so far.
    exchanges: Mutex<u64>,
}

impl MpiRank {
    /// Sends `outgoing[r]` to each rank `r`, and returns the bytes received from each.
    fn exchange(&self, stage: &str, outgoing: &[Arc<Vec<u8>>]) -> Result<Vec<Vec<u8>>> {
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        *exchanges += 1;
        let (process, members) = (&*self.process, &self.members[..]);
        let tags = self.tags;
        let rank = self.rank;
        let number = *exchanges;
        let exchange = Exchange { process, members, tags, rank, stage, number };
        // An error ends the run, even if the caller ignores it.
        exchange.run(outgoing).inspect_err(|e| process.abort(&e.to_string()))
    }

    /// Replaces `values` by the sum of the contributions of all ranks, in rank order.
    fn sum(&self, stage: &str, all: &[Vec<u8>], values: &mut [f32]) -> Result<()> {
        if let Some(other) = all.iter().position(|b| b.len() != size_of_val(values)) {
            return Err(another_length(self.members[other], stage));
        }
        values.fill(0.0);
        all.iter().for_each(|bytes| add(values, bytes));
        Ok(())
    }
}

impl Communicator for MpiRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn all_gather(&self, stage: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let bytes = Arc::new(bytes.to_vec());
        let all: Vec<_> = self.members.iter().map(|_| bytes.clone()).collect();
        self.exchange(stage, &all)
    }

    fn all_to_all(&self, stage: &str, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        check_outgoing(&outgoing, self.size(), stage)?;
        let outgoing: Vec<_> = outgoing.into_iter().map(Arc::new).collect();
        self.exchange(stage, &outgoing)
    }

    /// Every rank sums a share of the values, in rank order, and sends its sums to all.
    fn all_reduce_sum(&self, stage: &str, values: &mut [f32]) -> Result<()> {
        if self.size() == 1 {
            return self.process.state().listen(&self.process, stage);
        }
        if size_of_val(values) <= SMALL {
            let all = self.all_gather(stage, bytemuck::cast_slice(values))?;
            return self.sum(stage, &all, values);
        }
        let share = values.len().div_ceil(self.size());
        let bytes = |share: &[f32]| Arc::new(bytemuck::cast_slice(share).to_vec());
        let mut shares: Vec<_> = values.chunks(share).map(bytes).collect();
        shares.resize(self.size(), Arc::default());
        let mut sums = vec![0.0; shares[self.rank].len() / size_of::<f32>()];
        self.sum(stage, &self.exchange(stage, &shares)?, &mut sums)?;
        let all = self.all_gather(stage, bytemuck::cast_slice(&sums))?;
        for ((rank, values), bytes) in values.chunks_mut(share).enumerate().zip(&all) {
            if bytes.len() != size_of_val(values) {
                return Err(another_length(self.members[rank], stage));
            }
            bytemuck::cast_slice_mut(values).copy_from_slice(bytes);
        }
        Ok(())
    }

    fn split(&self, stage: &str, color: usize, key: usize) -> Result<Box<dyn Communicator + '_>> {
        let process = &self.process;
        let mine = [color as u64, key as u64, process.state().groups];
        let all = group::numbers(stage, &self.all_gather(stage, &group::message(mine))?)?;
        let members = group::members(all.iter().map(|&[color, key, _]| (color, key)), mine[0]);
        // A group number that none of the members has used before.
        let number = members.iter().map(|&member| all[member][2]).max().unwrap_or(0) + 1;
        if number > LAST_GROUP {
            let text = format!("{stage}: more than {LAST_GROUP} groups of ranks");
            return Err(Error::new(Kind::Limit, text).hint("split once and keep the group"));
        }
        process.state().groups = number;
        let rank = members.iter().position(|&member| member == self.rank);
        let rank = rank.expect("a rank is in its group");
        let members = members.into_iter().map(|member| self.members[member]).collect();
        let (process, tags) = (process.clone(), Tags::of(number));
        Ok(Box::new(Self { process, members, rank, tags, exchanges: Mutex::new(0) }))
    }

    fn abort(&self, reason: &str) {
        self.process.abort(reason);
    }
}
