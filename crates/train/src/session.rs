//! What every rank of a run shares while it trains: configuration, threads, keys, callbacks.

use std::path::Path;

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_config::RunConfig;

use crate::embeddings::{Rows, TableSpec, Whole};
use crate::evaluation::Goal;
use crate::state::TrainState;
use crate::telemetry::{EpochRecord, Meter, Pulse};

/// What every rank reads and none changes.
pub struct Session<'a> {
    /// The run.
    pub config: &'a RunConfig,
    /// The score that decides which weights are best.
    pub goal: &'a Goal,
    /// Compute threads.
    pub threads: Threads,
    /// Ranks that share this machine, this one included.
    pub local_ranks: usize,
    /// The embedding tables.
    pub tables: &'a [TableSpec],
    /// What this rank counts with.
    pub meter: &'a Meter,
    /// Called on rank 0 after each epoch, in order.
    pub on_epoch: &'a (dyn Fn(&EpochRecord) + Sync),
    /// Called on rank 0 when the state can be saved, with all rows of each table.
    pub on_checkpoint: &'a (dyn Fn(&TrainState, &[Whole<'_>]) -> Result<()> + Sync),
    /// Called on rank 0 when the best weights so far can be written, with the best rows of each table.
    pub on_best: &'a (dyn Fn(&TrainState, Vec<Rows<'_>>) -> Result<()> + Sync),
    /// The run's folder.
    pub dir: &'a Path,
    /// What rank 0 is doing, for the log.
    pub pulse: &'a Pulse,
}

/// Compute threads, as a rank may use them.
#[derive(Debug, Clone, Copy)]
pub struct Threads {
    /// Of each rank.
    pub each: usize,
    /// Of all ranks of a host, for work that one of them does while the others wait.
    pub host: usize,
}

/// Keys of everything random in a run; each use has a word of its own.
#[derive(Clone, Copy)]
pub(crate) struct Keys(Key);

impl Keys {
    pub fn new(seed: u64) -> Self {
        Self(Key::new(seed))
    }

    /// Order of the seeds in an epoch, and the clusters or subgraphs drawn.
    pub fn order(self, epoch: usize, graph: usize) -> Key {
        self.0.with(1).with(epoch as u64).with(graph as u64)
    }

    /// Neighbours drawn in an epoch.
    pub fn sample(self, epoch: usize) -> Key {
        self.0.with(2).with(epoch as u64)
    }

    /// Dropout of a step.
    pub fn dropout(self, epoch: usize, graph: usize, step: usize) -> Key {
        self.0.with(3).with(epoch as u64).with(graph as u64).with(step as u64)
    }
}
