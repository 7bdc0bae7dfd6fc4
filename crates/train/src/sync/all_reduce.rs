//! `gradient`: synchronous SGD (DistDGLv2 §5). A step's batch does not depend on the number of
//! ranks: its seeds are split evenly, gradients of the summed loss are added over the ranks and
//! divided by the weight of the whole batch. Every rank makes the same number of steps. Embeddings
//! follow the same rule: each is owned by one rank, to which all ranks push the gradients of the
//! rows in their batches.

use std::time::Instant;

use gnarl_common::threads::pool;
use gnarl_common::{Result, profile};
use gnarl_engine::Communicator;
use gnarl_nn::Mode;
use gnarl_nn::optim::Optimizer;

use super::epoch::{
    close_epochs, consume, evaluate_left, evaluates, gathered, learning_rate, not_finite, training,
};
use super::keeper::Keeper;
use super::synchronization::Synchronization;
use super::totals;
use crate::embeddings::{
    EmbeddingTables, Fetch, RowGradients, Table, clip, dense_squares, squares,
};
use crate::faults;

use crate::data::batch::BatchSpec;
use crate::pipeline::{self, Deliveries};
use crate::session::{Keys, Session};
use crate::state::TrainState;
use crate::step::{AnyStep, Gradients};
use crate::telemetry::{EpochRecord, Tally, processor};

/// Synchronous SGD: gradients are added over the ranks in each step.
pub(crate) struct AllReduce;

impl Synchronization<dyn AnyStep + '_> for AllReduce {
    fn train(
        &self,
        session: &Session<'_>,
        steps: &(dyn AnyStep + '_),
        comm: &dyn Communicator,
        mut state: TrainState,
    ) -> Result<TrainState> {
        let config = session.config;
        let mut optimizer = config.optimizer.build()?;
        if let Some(saved) = state.optimizers.get(&0) {
            optimizer.load_state(saved)?;
        }
        let mut keeper = Keeper::new(session, comm);
        evaluate_left(session, steps, &mut keeper, &mut state)?;
        if state.progress.stopped {
            return Ok(state);
        }
        let epochs = state.progress.epoch + 1..=config.train.epochs;
        let specs = epochs.flat_map(|epoch| {
            let specs = steps.epoch(epoch, comm.rank(), comm.size());
            session.pulse.planned(epoch, &specs);
            specs
        });
        let prepared_by = (&config.train, session.preparation_threads());
        pipeline::run(prepared_by, steps, Box::new(specs), |deliveries| {
            let mut run = Run {
                session,
                steps,
                comm,
                pool: pool(session.threads.each)?,
                keys: Keys::new(config.train.seed),
                keeper,
            };
            while state.progress.epoch < config.train.epochs && !state.progress.stopped {
                let epoch = state.progress.epoch + 1;
                let record = run.epoch(epoch, deliveries, &mut state, optimizer.as_mut())?;
                let judge = evaluates(session, epoch);
                let mut collect = |state: &mut TrainState| {
                    state.optimizers.insert(0, optimizer.state());
                    Ok(())
                };
                let keeper = &mut run.keeper;
                let ended = (vec![record], judge);
                close_epochs(session, steps, keeper, &mut state, ended, &mut collect)?;
            }
            Ok(state)
        })
    }
}

struct Run<'a> {
    session: &'a Session<'a>,
    steps: &'a dyn AnyStep,
    comm: &'a dyn Communicator,
    pool: rayon::ThreadPool,
    keys: Keys,
    keeper: Keeper<'a>,
}

impl Run<'_> {
    fn epoch(
        &mut self,
        epoch: usize,
        deliveries: &Deliveries<'_>,
        state: &mut TrainState,
        optimizer: &mut dyn Optimizer,
    ) -> Result<EpochRecord> {
        let start = Instant::now();
        let lr = learning_rate(self.session.config, epoch);
        let mut tally = Tally::default();
        let (cached, worked) = (self.steps.cached(), processor::seconds(&self.pool));
        self.session.pulse.epochs_begin(epoch..=epoch);
        let mut step = 0;
        while !self.step(epoch, step, lr, deliveries, state, optimizer, &mut tally)? {
            step += 1;
        }
        state.tables.iter_mut().try_for_each(Table::release)?;
        tally.count_cached(cached, self.steps.cached());
        tally.read = self.steps.read_bytes();
        tally.processor = processor::seconds(&self.pool) - worked;
        let ranks = gathered(self.comm, &tally)?;
        let record = Tally::record(&ranks, epoch, lr, start.elapsed().as_secs_f64());
        let batch_workers = Some(self.steps.batch_workers()).filter(|&workers| workers > 0);
        Ok(EpochRecord { batch_workers, ..record })
    }

    /// One optimizer step; `true` after the epoch's last.
    fn step(
        &mut self,
        epoch: usize,
        step: usize,
        lr: f32,
        deliveries: &Deliveries<'_>,
        state: &mut TrainState,
        optimizer: &mut dyn Optimizer,
        tally: &mut Tally,
    ) -> Result<bool> {
        let before = *tally;
        let mut dense = vec![0.0; state.params.len() + totals::PLACES];
        let mut rows = vec![RowGradients::default(); state.tables.len()];
        let key = self.keys.dropout(epoch, 0, step);
        let mode = training(self.session.config, key);
        let spec = self.add_batches(mode, deliveries, state, &mut dense, &mut rows, tally)?;
        let start = Instant::now();
        faults::reached("reduce");
        self.comm.all_reduce_sum("gradients", &mut dense)?;
        let push = |(table, own): (&Table, &RowGradients)| table.push(self.comm, own);
        let joined = || state.tables.iter().zip(&rows).map(push).collect::<Result<Vec<_>>>();
        let mut joined = self.pool.install(joined)?;
        tally.stages.reduce += start.elapsed().as_secs_f64();
        let _span = profile::stage("update");
        let start = Instant::now();
        let (dense, sums) = dense.split_at_mut(state.params.len());
        let weight = totals::weight(sums) as f32;
        if weight > 0.0 {
            // All ranks have equal sums, and so reach the same decision.
            self.keeper.finite(state, "loss", sums[0].into(), epoch)?;
            self.keeper.finite(state, "the gradient", not_finite(dense), epoch)?;
            let sparse = joined.iter_mut().flat_map(|summed| summed.grads_mut());
            dense.iter_mut().chain(sparse).for_each(|g| *g /= weight);
            let limit = self.session.config.train.clip_norm;
            let first = self.comm.rank() == 0;
            // Unless it clips, the norm is only recorded, which the first rank does for all.
            let (of_rows, of_weights) = self.pool.install(|| {
                let of_weights = if first || limit > 0.0 { dense_squares(dense) } else { 0.0 };
                (squares(&joined), of_weights)
            });
            // The gradient of the weights is equal on all ranks, rows are each one rank's.
            tally.squares += of_rows;
            if first {
                tally.squares += of_weights;
                tally.steps += 1;
            }
            if limit > 0.0 {
                let mut all = [of_rows];
                if !joined.is_empty() {
                    self.comm.all_reduce_f64("norm of gradients", &mut all)?;
                }
                clip(dense, &mut joined, of_weights + all[0], limit);
            }
            let rate = lr * self.session.config.embedding.rate(self.session.config.train.lr);
            let (params, tables) = (state.params.flat_mut(), &mut state.tables);
            self.pool.install(|| {
                optimizer.step(params, dense, lr);
                tables
                    .iter_mut()
                    .zip(&joined)
                    .try_for_each(|(table, summed)| table.apply(summed, rate))
            })?;
        }
        tally.stages.compute += start.elapsed().as_secs_f64();
        let counted = tally.since(&before);
        self.session.meter.step(&counted);
        self.session.pulse.step(&counted);
        Ok(spec.last_of_epoch)
    }

    /// Adds the gradients of this rank's batches of a step, and returns the last batch.
    fn add_batches(
        &self,
        mode: Mode,
        deliveries: &Deliveries<'_>,
        state: &mut TrainState,
        dense: &mut [f32],
        rows: &mut [RowGradients],
        tally: &mut Tally,
    ) -> Result<BatchSpec> {
        let (dense, sums) = dense.split_at_mut(state.params.len());
        loop {
            let mut gradients = Gradients { dense, rows };
            let embeddings =
                EmbeddingTables { tables: &state.tables, comm: self.comm, pool: &self.pool };
            let now = (&state.params, &embeddings as &dyn Fetch);
            let (spec, loss) =
                consume(self.steps, deliveries, now, mode, &self.pool, &mut gradients, tally)?;
            if let Some(uses) = &spec.uses {
                state.tables.iter_mut().try_for_each(|table| table.uses(uses))?;
            }
            totals::add(sums, loss);
            tally.loss += loss.sum;
            tally.weight += loss.weight;
            if spec.last_of_step {
                return Ok(spec);
            }
        }
    }
}
