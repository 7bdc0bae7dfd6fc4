//! Epochs, shared by all synchronization strategies: batches, figures, evaluation.

use std::time::Instant;

use gnarl_common::rng::Key;
use gnarl_common::{Result, profile};
use gnarl_config::RunConfig;
use gnarl_engine::Communicator;
use gnarl_nn::{Mode, Params};
use rayon::ThreadPool;

use super::keeper::Keeper;
use crate::data::batch::BatchSpec;
use crate::embeddings::Fetch;
use crate::faults;
use crate::pipeline::Deliveries;
use crate::session::Session;
use crate::state::TrainState;
use crate::step::{AnyStep, BatchLoss, Gradients};
use crate::telemetry::profile::{COMPUTE, EVALUATE};
use crate::telemetry::{EpochRecord, Figures, Stages, Tally};

/// The learning rate of `epoch` (from 1): schedules count epochs, so that they do not depend on
/// batches.
pub(super) fn learning_rate(config: &RunConfig, epoch: usize) -> f32 {
    config.train.lr * config.schedule.factor(epoch as u64 - 1, config.train.epochs as u64)
}

/// The mode of a step whose key is `key`.
pub(super) fn training(config: &RunConfig, key: Key) -> Mode {
    Mode::Train { key, precision: config.train.precision.into() }
}

/// Takes the next batch, adds its gradient, and updates the tally.
pub(super) fn consume(
    step: &dyn AnyStep,
    deliveries: &Deliveries<'_>,
    (params, embeddings): (&Params, &dyn Fetch),
    mode: Mode,
    pool: &ThreadPool,
    gradients: &mut Gradients<'_>,
    tally: &mut Tally,
) -> Result<(BatchSpec, BatchLoss)> {
    let start = Instant::now();
    let delivery = profile::stage("wait for a batch").within(|| deliveries.next())?;
    tally.stages.wait += start.elapsed().as_secs_f64();
    tally.stages.add(delivery.stages);
    let start = Instant::now();
    let wanted = delivery.prepared.as_deref().map_or(Vec::new(), |batch| batch.embedding_ids());
    let embeddings = embeddings.fetch(&wanted)?;
    tally.stages.reduce += start.elapsed().as_secs_f64();
    let Some(batch) = &delivery.prepared else {
        return Ok((delivery.spec, BatchLoss::default()));
    };
    let counts = batch.counts();
    tally.edges += counts.edges;
    tally.seeds += counts.seeds;
    tally.cached.iter_mut().zip(counts.cached).for_each(|(sum, rows)| *sum += rows);
    let (start, before) = (Instant::now(), step.exchanges().unwrap_or_default());
    faults::reached("compute");
    let inputs = (delivery.spec.graph, embeddings);
    let gradient = || pool.install(|| batch.gradient(params, inputs, mode, gradients));
    let loss = profile::stage(COMPUTE).within(gradient)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut exchange = 0.0;
    match step.exchanges() {
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
    Ok((delivery.spec, loss))
}

/// Gathers the counters of all ranks, in their order.
pub(super) fn gathered(comm: &dyn Communicator, tally: &Tally) -> Result<Vec<Figures>> {
    let all = comm.all_gather("epoch figures", bytemuck::cast_slice(&tally.to_array()))?;
    let figures = all.iter().map(|bytes| {
        let mut figures = [0.0; Tally::FIGURES];
        for (figure, bytes) in figures.iter_mut().zip(bytes.as_chunks().0) {
            *figure = f64::from_le_bytes(*bytes);
        }
        figures
    });
    Ok(figures.collect())
}

/// Returns whether `epoch` (counted from 1) ends with an evaluation.
pub(super) fn evaluates(session: &Session<'_>, epoch: usize) -> bool {
    let train = &session.config.train;
    if session.config.evaluate.is_never() {
        return false;
    }
    epoch == train.epochs || (train.eval_every > 0 && epoch.is_multiple_of(train.eval_every))
}

/// Evaluates the epochs that a run had trained, but not evaluated, when it was killed.
///
/// # Errors
/// Those of [`close_epochs`].
pub(super) fn evaluate_left(
    session: &Session<'_>,
    step: &dyn AnyStep,
    keeper: &mut Keeper<'_>,
    state: &mut TrainState,
) -> Result<()> {
    let records = std::mem::take(&mut state.progress.unevaluated);
    if records.is_empty() {
        return Ok(());
    }
    // Optimizers are in the state, as they were read.
    close_epochs(session, step, keeper, state, (records, true), &mut |_| Ok(()))
}

/// Evaluates the current weights and advances the state: best weights, patience, the callbacks, and writes what is due.
/// Records end with the epoch just finished; `optimizers` copies the state of optimizers.
///
/// # Errors
/// If a loss or a weight is not finite; those of evaluation, of writing and of the other ranks.
pub(super) fn close_epochs(
    session: &Session<'_>,
    step: &dyn AnyStep,
    keeper: &mut Keeper<'_>,
    state: &mut TrainState,
    (records, judge): (Vec<EpochRecord>, bool),
    optimizers: &mut dyn FnMut(&mut TrainState) -> Result<()>,
) -> Result<()> {
    let comm = keeper.comm();
    let first = state.progress.history.len();
    for record in records {
        keeper.finite(state, "loss", record.loss, record.epoch)?;
        state.progress.epoch = record.epoch;
        state.progress.history.push(record);
    }
    let epoch = state.progress.epoch;
    keeper.finite(state, "a weight", not_finite(state.params.flat()), epoch)?;
    if judge {
        if !state.tables.is_empty() {
            let found = not_finite_of_all(comm, state)?;
            keeper.finite(state, "an embedding", found, epoch)?;
        }
        keeper.before_evaluation(state, first, optimizers)?;
        session.pulse.doing("evaluating");
        faults::reached("evaluate");
        let start = Instant::now();
        let evaluate = || step.evaluate(state, comm, session.threads);
        let evaluation = profile::stage(EVALUATE).within(evaluate)?;
        keeper.evaluated(start.elapsed());
        keeper.finite(state, "the validation loss", evaluation.valid_loss, epoch)?;
        state.evaluate(&evaluation, session.goal, session.config.train.patience);
        if let Some(last) = state.progress.history.last_mut() {
            last.stages.evaluate = start.elapsed().as_secs_f64();
            session.meter.spent(Stages { evaluate: last.stages.evaluate, ..Stages::default() });
        }
    }
    if session.config.evaluate.is_never() && epoch == session.config.train.epochs {
        state.keep_latest();
    }
    for record in &state.progress.history[first..] {
        session.meter.epoch(record);
        session.pulse.epoch_ends(record);
        if comm.rank() == 0 {
            (session.on_epoch)(record);
        }
    }
    keeper.after_epoch(state, optimizers)
}

/// The first non-finite value; 0 if there is none.
pub(super) fn not_finite(values: &[f32]) -> f64 {
    // Without an early end the loop runs on vectors, and values are finite but once in a run.
    let finite = values.iter().fold(true, |finite, value| finite & value.is_finite());
    let found = if finite { None } else { values.iter().find(|value| !value.is_finite()) };
    found.copied().unwrap_or(0.0).into()
}

/// The first non-finite value of all ranks' embeddings; 0 if there is none.
fn not_finite_of_all(comm: &dyn Communicator, state: &TrainState) -> Result<f64> {
    let own = state.tables.iter().map(|table| not_finite(&table.rows().values().scan()));
    let own = own.reduce(|a, b| if a.is_finite() { b } else { a }).unwrap_or(0.0);
    let all = comm.all_gather("embeddings are finite", &own.to_le_bytes())?;
    let mut all = all.iter().filter_map(|bytes| Some(f64::from_le_bytes(*bytes.first_chunk()?)));
    Ok(all.find(|found| !found.is_finite()).unwrap_or(0.0))
}
