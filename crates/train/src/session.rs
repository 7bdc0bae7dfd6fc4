//! The session of a run, shared by all ranks: configuration, threads, keys, callbacks.

use std::path::Path;

use gnarl_common::rng::Key;
use gnarl_common::{Home, Result};
use gnarl_config::RunConfig;

use crate::embeddings::{Rows, TableSpec, Whole};
use crate::evaluation::Goal;
use crate::registry::Registry;
use crate::state::TrainState;
use crate::telemetry::{EpochRecord, Meter, Pulse};

/// The immutable inputs of every rank.
pub struct Session<'a> {
    /// Configuration of the run.
    pub config: &'a RunConfig,
    /// The program's own parts.
    pub registry: &'a Registry,
    /// The metric that selects the best weights.
    pub goal: &'a Goal,
    /// Compute threads.
    pub threads: Threads,
    /// Ranks that share this machine, this one included.
    pub local_ranks: usize,
    /// The embedding tables.
    pub tables: &'a [TableSpec],
    /// This rank's meter.
    pub meter: &'a Meter,
    /// Called on rank 0 after each epoch, in order.
    pub on_epoch: &'a (dyn Fn(&EpochRecord) + Sync),
    /// Called on rank 0 when the state can be saved, with the complete state of each table.
    pub on_checkpoint: &'a (dyn Fn(&TrainState, &[Whole<'_>]) -> Result<()> + Sync),
    /// Called on rank 0 when the best weights so far can be written, with the best embeddings of
    /// each table.
    pub on_best: &'a (dyn Fn(&TrainState, Vec<Rows<'_>>) -> Result<()> + Sync),
    /// The run's folder.
    pub dir: &'a Path,
    /// The batch workers of the run.
    #[cfg(feature = "serve")]
    pub(crate) feed: Option<&'a std::sync::Arc<crate::feed::Feed>>,
    /// The place of arrays that may exceed the memory.
    pub home: &'a Home,
    /// Activity of rank 0, for the log.
    pub pulse: &'a Pulse,
}

impl Session<'_> {
    /// Batches that each stage of this rank's pipeline works on at once.
    pub(crate) fn preparation_threads(&self) -> usize {
        self.config.preparation_threads(self.threads.each)
    }
}

/// Numbers of compute threads.
#[derive(Debug, Clone, Copy)]
pub struct Threads {
    /// Of each rank.
    pub each: usize,
    /// Of all ranks of a host, for work of one of them while the others wait.
    pub host: usize,
    /// True if ranks are on several hosts, so that work of one of them leaves hosts idle.
    pub several_hosts: bool,
}

/// Compute threads of each of the ranks that share a machine.
pub(crate) fn threads_each(config: &RunConfig, ranks: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if config.train.threads == 0 { cores } else { config.train.threads };
    (threads / ranks).max(1)
}

/// Keys of everything random in a run, one stream per use.
#[derive(Clone, Copy)]
pub(crate) struct Keys(Key);

impl Keys {
    pub fn new(seed: u64) -> Self {
        Self(Key::new(seed))
    }

    /// Order of the seeds in an epoch, and of clusters or subgraphs.
    pub fn order(self, epoch: usize, graph: usize) -> Key {
        self.0.with(1).with(epoch as u64).with(graph as u64)
    }

    /// Neighbors drawn in an epoch.
    pub fn sample(self, epoch: usize) -> Key {
        self.0.with(2).with(epoch as u64)
    }

    /// The deal of parts in an epoch.
    pub fn deal(self, epoch: usize) -> Key {
        self.0.with(6).with(epoch as u64)
    }

    /// Dropout of a step.
    pub fn dropout(self, epoch: usize, graph: usize, step: usize) -> Key {
        self.0.with(3).with(epoch as u64).with(graph as u64).with(step as u64)
    }
}
