//! Training strategies: who computes what, and what is shared when. One file each.

mod average;
mod gradient;
mod units;

use std::sync::Arc;
use std::time::{Duration, Instant};

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Error, Kind, Result};
use gnarl_nn::models::Model;
use rayon::ThreadPool;

use crate::config::{EvaluateOn, RunConfig, Strategy};
use crate::evaluate::{Evaluation, evaluate, evaluate_divided};
use crate::faults;
use crate::history::{EpochRecord, Stages, Tally};
use crate::metrics::Meter;
use crate::pipeline::{Deliveries, Delivery};
use crate::state::TrainState;
use crate::step::{BatchLoss, batch_gradient};
use crate::task::{TaskGraph, Topology};

/// What every rank reads and none changes.
pub struct Session<'a> {
    /// The run.
    pub config: &'a RunConfig,
    /// The model.
    pub model: &'a dyn Model,
    /// The whole graph.
    pub whole: Arc<TaskGraph>,
    /// Its parts; empty if it was not cut.
    pub parts: Vec<Arc<TaskGraph>>,
    /// Part of each node; empty if the graph was not cut.
    pub owner: &'a [u32],
    /// The metric evaluated.
    pub metric: &'a str,
    /// Compute threads of each rank.
    pub threads: usize,
    /// What this rank counts with.
    pub meter: &'a Meter,
    /// Called on rank 0 after each epoch, in order.
    pub on_epoch: &'a (dyn Fn(&EpochRecord) + Sync),
    /// Called on rank 0 when the state can be saved.
    pub on_checkpoint: &'a (dyn Fn(&TrainState) -> Result<()> + Sync),
}

/// Trains from `state` to the last epoch or until patience ends; all ranks return the same.
///
/// # Errors
/// Those of sampling and of the other ranks.
pub fn train(
    session: &Session<'_>,
    rank: &dyn Communicator,
    state: TrainState,
) -> Result<TrainState> {
    match session.config.train.strategy {
        Strategy::Gradient => gradient::train(session, rank, state),
        Strategy::Average => average::train(session, rank, state),
    }
}

/// A pool of `threads` compute threads.
fn pool(threads: usize) -> Result<ThreadPool> {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let builder = builder.thread_name(|i| format!("compute-{i}"));
    builder
        .build()
        .map_err(|e| Error::new(Kind::Limit, format!("cannot start compute threads: {e}")))
}

/// Keys of everything random in a run; each use has a word of its own.
#[derive(Clone, Copy)]
struct Keys(Key);

impl Keys {
    fn new(seed: u64) -> Self {
        Self(Key::new(seed))
    }

    /// Order of the training nodes in an epoch, and the clusters or subgraphs drawn.
    fn order(self, epoch: usize, graph: usize) -> Key {
        self.0.with(1).with(epoch as u64).with(graph as u64)
    }

    /// Neighbours drawn in an epoch.
    fn sample(self, epoch: usize) -> Key {
        self.0.with(2).with(epoch as u64)
    }

    /// Dropout of a step.
    fn dropout(self, epoch: usize, graph: usize, step: usize) -> Key {
        self.0.with(3).with(epoch as u64).with(graph as u64).with(step as u64)
    }
}

/// Takes the next batch and adds its gradient; keeps the tally.
fn consume(
    session: &Session<'_>,
    graphs: &[Arc<TaskGraph>],
    deliveries: &Deliveries<'_>,
    params: &gnarl_nn::Params,
    key: Key,
    pool: &ThreadPool,
    grads: &mut [f32],
    tally: &mut Tally,
) -> Result<(Delivery, BatchLoss)> {
    let start = Instant::now();
    let delivery = deliveries.next()?;
    tally.stages.wait += start.elapsed().as_secs_f64();
    tally.stages.add(delivery.stages);
    let Some(prepared) = delivery.prepared.clone() else {
        return Ok((delivery, BatchLoss::default()));
    };
    tally.edges += prepared.batch.num_edges() as u64;
    tally.seeds += prepared.targets.len() as u64;
    let start = Instant::now();
    faults::reached("compute");
    let labels = &graphs[delivery.job.graph].labels;
    let loss =
        pool.install(|| batch_gradient(session.model, params, labels, &prepared, key, grads))?;
    tally.stages.compute += start.elapsed().as_secs_f64();
    Ok((delivery, loss))
}

/// Whether `epoch` (counted from 1) ends with an evaluation.
fn evaluates(session: &Session<'_>, epoch: usize) -> bool {
    let train = &session.config.train;
    epoch == train.epochs || (train.eval_every > 0 && epoch.is_multiple_of(train.eval_every))
}

/// Evaluates the current weights on rank 0 with all threads, tells everyone, and moves the state
/// on: best weights, patience, the callbacks. Records end with the epoch just finished.
fn close_epochs(
    session: &Session<'_>,
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
        let evaluation = share_evaluation(session, rank, state)?;
        state.judge(&evaluation, session.config.train.patience);
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

fn share_evaluation(
    session: &Session<'_>,
    rank: &dyn Communicator,
    state: &TrainState,
) -> Result<Evaluation> {
    faults::reached("evaluate");
    let (model, params, metric) = (session.model, &state.params, session.metric);
    if let Topology::Divided(divided) = &session.whole.topology {
        let pool = pool(session.threads)?;
        return evaluate_divided(model, params, &session.whole, divided, metric, rank, &pool);
    }
    let mut bytes = Vec::new();
    if rank.rank() == 0 {
        let pool = pool(session.threads * rank.size())?;
        let whole = [session.whole.clone()];
        let graphs = match session.config.train.evaluate_on {
            EvaluateOn::Parts if !session.parts.is_empty() => &session.parts[..],
            _ => &whole[..],
        };
        let graphs = graphs.iter().map(Arc::as_ref);
        let scores = pool.install(|| evaluate(model, params, graphs, metric))?;
        bytes =
            serde_json::to_vec(&(scores.valid, scores.valid_loss, scores.test)).unwrap_or_default();
    }
    let all = rank.all_gather("evaluation", &bytes)?;
    let (valid, valid_loss, test) = serde_json::from_slice(&all[0])
        .map_err(|e| Error::new(Kind::Rank, format!("rank 0 sent no evaluation: {e}")))?;
    Ok(Evaluation { valid, valid_loss, test })
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

    fn due(&mut self, rank: &dyn Communicator, finished: bool) -> Result<bool> {
        let now = finished || self.last.elapsed() >= self.interval;
        let all = rank.all_gather("checkpoint", &[u8::from(now)])?;
        let due = all[0] == [1];
        if due {
            self.last = Instant::now();
        }
        Ok(due)
    }
}
