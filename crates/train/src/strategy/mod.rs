//! Training strategies: who computes what, and what is shared when. One file each.

pub(crate) mod average;
pub(crate) mod best;
pub(crate) mod gradient;

use std::path::Path;
use std::time::Instant;

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Error, Kind, Result};
use gnarl_nn::Params;
use rayon::ThreadPool;

use crate::config::RunConfig;
use crate::embeddings::{Fetch, Rows, Whole};
use crate::faults;
use crate::history::{EpochRecord, Figures, Stages, Tally};
use crate::learner::{BatchLoss, Gradients, Inputs, Learner};
use crate::metrics::Meter;
use crate::pipeline::{Deliveries, Job};
use crate::pulse::Pulse;
use crate::state::TrainState;
use best::Keeper;

/// What every rank reads and none changes.
pub struct Session<'a> {
    /// The run.
    pub config: &'a RunConfig,
    /// The score that decides which weights are best.
    pub metric: &'a str,
    /// Compute threads.
    pub threads: Threads,
    /// Ranks that share this machine, this one included.
    pub neighbours: usize,
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
///
/// # Errors
/// If a loss or a weight is no finite number; those of evaluation and of the other ranks.
fn close_epochs<L: Learner>(
    session: &Session<'_>,
    learner: &L,
    keeper: &mut Keeper<'_>,
    state: &mut TrainState,
    records: Vec<EpochRecord>,
    judge: bool,
) -> Result<()> {
    let rank = keeper.rank();
    let first = state.progress.history.len();
    for record in records {
        keeper.finite(state, "loss", record.loss, record.epoch)?;
        state.progress.epoch = record.epoch;
        state.progress.history.push(record);
    }
    let epoch = state.progress.epoch;
    keeper.finite(state, "a weight", not_finite(state.params.flat()), epoch)?;
    if judge {
        let start = Instant::now();
        if !state.tables.is_empty() {
            let found = not_finite_of_all(rank, state)?;
            keeper.finite(state, "a learnt embedding", found, epoch)?;
        }
        session.pulse.doing("evaluating");
        faults::reached("evaluate");
        let evaluation = learner.evaluate(state, rank, session.threads)?;
        keeper.finite(state, "the validation loss", evaluation.valid_loss, epoch)?;
        state.judge(&evaluation, session.metric, session.config.train.patience);
        if let Some(last) = state.progress.history.last_mut() {
            last.stages.evaluate = start.elapsed().as_secs_f64();
            session.meter.spent(Stages { evaluate: last.stages.evaluate, ..Stages::default() });
        }
    }
    for record in &state.progress.history[first..] {
        session.meter.epoch(record);
        session.pulse.epoch_ends(record);
        if rank.rank() == 0 {
            (session.on_epoch)(record);
        }
    }
    Ok(())
}

/// The first value that is no finite number; 0 if there is none.
fn not_finite(values: &[f32]) -> f64 {
    // Without an early end the loop runs on vectors, and values are finite but once in a run.
    let finite = values.iter().fold(true, |finite, value| finite & value.is_finite());
    let found = if finite { None } else { values.iter().find(|value| !value.is_finite()) };
    found.copied().unwrap_or(0.0).into()
}

/// The first value of all ranks' embeddings that is no finite number; 0 if there is none.
fn not_finite_of_all(rank: &dyn Communicator, state: &TrainState) -> Result<f64> {
    let own = state.tables.iter().map(|table| not_finite(table.rows.values()));
    let own = own.reduce(|a, b| if a.is_finite() { b } else { a }).unwrap_or(0.0);
    let all = rank.all_gather("embeddings are finite", &own.to_le_bytes())?;
    let mut all = all.iter().filter_map(|bytes| Some(f64::from_le_bytes(*bytes.first_chunk()?)));
    Ok(all.find(|found| !found.is_finite()).unwrap_or(0.0))
}
