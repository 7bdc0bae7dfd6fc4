//! Training strategies: who computes what, and what is shared when. One file each.

pub(crate) mod average;
pub(crate) mod gradient;

use std::time::{Duration, Instant};

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::staging::interrupt;
use gnarl_graph::{Error, Kind, Result};
use gnarl_nn::Params;
use rayon::ThreadPool;

use crate::config::RunConfig;
use crate::embeddings::{Fetch, Whole};
use crate::faults;
use crate::history::{EpochRecord, Figures, Stages, Tally};
use crate::learner::{BatchLoss, Gradients, Inputs, Learner};
use crate::metrics::Meter;
use crate::pipeline::{Deliveries, Job};
use crate::state::TrainState;

/// What every rank reads and none changes.
pub struct Session<'a> {
    /// The run.
    pub config: &'a RunConfig,
    /// The score that decides which weights are best.
    pub metric: &'a str,
    /// Compute threads of each rank.
    pub threads: usize,
    /// Ranks that share this machine, this one included.
    pub neighbours: usize,
    /// What this rank counts with.
    pub meter: &'a Meter,
    /// Called on rank 0 after each epoch, in order.
    pub on_epoch: &'a (dyn Fn(&EpochRecord) + Sync),
    /// Called on rank 0 when the state can be saved, with all rows of each table.
    pub on_checkpoint: &'a (dyn Fn(&TrainState, &[Whole<'_>]) -> Result<()> + Sync),
}

/// A pool of `threads` compute threads.
pub(crate) fn pool(threads: usize) -> Result<ThreadPool> {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let builder = builder.thread_name(|i| format!("compute-{i}"));
    builder
        .build()
        .map_err(|e| Error::new(Kind::Limit, format!("cannot start compute threads: {e}")))
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

/// The rate of `epoch` (from 1): schedules count epochs, so that they do not depend on batches.
fn learning_rate(config: &RunConfig, epoch: usize) -> f32 {
    config.train.lr * config.schedule.factor(epoch as u64 - 1, config.train.epochs as u64)
}

/// Takes the next batch and adds its gradient; keeps the tally.
fn consume<L: Learner>(
    learner: &L,
    deliveries: &Deliveries<'_, L::Batch>,
    (params, learnt): (&Params, &dyn Fetch),
    key: Key,
    pool: &ThreadPool,
    gradients: &mut Gradients<'_>,
    tally: &mut Tally,
) -> Result<(Job, BatchLoss)> {
    let start = Instant::now();
    let delivery = deliveries.next()?;
    tally.stages.wait += start.elapsed().as_secs_f64();
    tally.stages.add(delivery.stages);
    let start = Instant::now();
    let wanted = delivery.prepared.as_deref().map_or(Vec::new(), |batch| learner.rows(batch));
    let rows = learnt.fetch(&wanted)?;
    tally.stages.reduce += start.elapsed().as_secs_f64();
    let Some(batch) = &delivery.prepared else {
        return Ok((delivery.job, BatchLoss::default()));
    };
    let counts = learner.counts(batch);
    tally.edges += counts.edges;
    tally.seeds += counts.seeds;
    let (start, before) = (Instant::now(), learner.exchanges().unwrap_or_default());
    faults::reached("compute");
    let inputs = Inputs { batch: &**batch, graph: delivery.job.graph, rows };
    let loss = pool.install(|| learner.gradient(params, inputs, key, gradients))?;
    let seconds = start.elapsed().as_secs_f64();
    let mut exchange = 0.0;
    match learner.exchanges() {
        Some(after) => {
            exchange = 1e-9 * (after.nanos - before.nanos) as f64;
            let sent = tally.exchanged.iter_mut().zip(after.bytes).zip(before.bytes);
            sent.for_each(|((sum, after), before)| *sum += after - before);
            tally.passed += after.columns - before.columns;
        }
        None => tally.passed += counts.edges,
    }
    tally.stages.exchange += exchange;
    tally.stages.compute += (seconds - exchange).max(0.0);
    Ok((delivery.job, loss))
}

/// What every rank counted, in their order.
fn gathered(rank: &dyn Communicator, tally: &Tally) -> Result<Vec<Figures>> {
    let all = rank.all_gather("epoch figures", bytemuck::cast_slice(&tally.to_array()))?;
    let figures = all.iter().map(|bytes| {
        let mut figures = [0.0; Tally::FIGURES];
        for (figure, bytes) in figures.iter_mut().zip(bytes.as_chunks().0) {
            *figure = f64::from_le_bytes(*bytes);
        }
        figures
    });
    Ok(figures.collect())
}

/// Whether `epoch` (counted from 1) ends with an evaluation.
fn evaluates(session: &Session<'_>, epoch: usize) -> bool {
    let train = &session.config.train;
    epoch == train.epochs || (train.eval_every > 0 && epoch.is_multiple_of(train.eval_every))
}

/// Evaluates the current weights and moves the state on: best weights, patience, the callbacks.
/// Records end with the epoch just finished.
fn close_epochs<L: Learner>(
    session: &Session<'_>,
    learner: &L,
    rank: &dyn Communicator,
    state: &mut TrainState,
    records: Vec<EpochRecord>,
    judge: bool,
) -> Result<()> {
    state.progress.epoch = records.last().map_or(state.progress.epoch, |r| r.epoch);
    let first = state.progress.history.len();
    state.progress.history.extend(records);
    if judge {
        let start = Instant::now();
        faults::reached("evaluate");
        let evaluation = learner.evaluate(state, rank, session.threads)?;
        state.judge(&evaluation, session.metric, session.config.train.patience);
        if let Some(last) = state.progress.history.last_mut() {
            last.stages.evaluate = start.elapsed().as_secs_f64();
            session.meter.spent(Stages { evaluate: last.stages.evaluate, ..Stages::default() });
        }
    }
    state.progress.history[first..].iter().for_each(|record| session.meter.epoch(record));
    if rank.rank() == 0 {
        state.progress.history[first..].iter().for_each(session.on_epoch);
    }
    Ok(())
}

/// Has the first rank save the state, with the rows of all ranks.
fn save(session: &Session<'_>, rank: &dyn Communicator, state: &TrainState) -> Result<()> {
    let tables = state.tables.iter().map(|table| table.whole(rank));
    let tables = tables.collect::<Result<Vec<_>>>()?;
    if rank.rank() > 0 {
        return Ok(());
    }
    (session.on_checkpoint)(state, &tables)
}

/// Decides on rank 0 whether enough time has passed for a checkpoint, so that all ranks agree.
struct CheckpointClock {
    last: Instant,
    interval: Duration,
}

impl CheckpointClock {
    fn new(session: &Session<'_>) -> Self {
        let seconds = session.config.train.checkpoint_seconds.clamp(0.0, 1e9);
        Self { last: Instant::now(), interval: Duration::from_secs_f64(seconds) }
    }

    /// What is to be done after an epoch, the same on all ranks: the first has the clock, and a request
    /// to stop may have reached any of them.
    fn due(&mut self, rank: &dyn Communicator, finished: bool) -> Result<Due> {
        let stop = interrupt::requested().is_some() && !finished;
        let save = finished || self.last.elapsed() >= self.interval;
        let all = rank.all_gather("checkpoint", &[u8::from(save), u8::from(stop)])?;
        let stop = all.iter().any(|other| other[1] == 1);
        let save = stop || all[0][0] == 1;
        if save {
            self.last = Instant::now();
        }
        Ok(Due { save, stop })
    }
}

/// What follows an epoch.
struct Due {
    /// A checkpoint.
    save: bool,
    /// After it, the end of this process.
    stop: bool,
}

/// How a run ends that was asked to stop; its checkpoint is written.
fn stopped(session: &Session<'_>, state: &TrainState) -> Error {
    let progress = &state.progress;
    let epochs = session.config.train.epochs;
    let message = format!("stopped after epoch {} of {epochs}, as asked", progress.epoch);
    Error::new(Kind::Interrupted, message).hint("go on with --resume")
}
