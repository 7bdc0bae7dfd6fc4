//! `average`: model averaging (CATGNN §3.3). Every part trains a model of its own; every
//! `sync_every` epochs the weights are averaged in proportion to the parts' training nodes, an outer
//! optimizer steps towards the average, and parts go on from there. Embeddings become their average over
//! the parts with a replica. A rank trains parts that follow each other, which lie on its host, one after
//! the other.

use std::collections::BTreeMap;
use std::time::Instant;

use gnarl_common::threads::pool;
use gnarl_common::{Result, profile};
use gnarl_config::AverageSection;
use gnarl_engine::Communicator;
use gnarl_nn::Params;
use gnarl_nn::optim::Optimizer;
use rayon::ThreadPool;

use super::collect::collect;
use super::epoch::{
    close_epochs, consume, evaluate_left, evaluates, gathered, learning_rate, training,
};
use super::keeper::Keeper;
use super::outer::OuterOptimizer;
use super::synchronization::Synchronization;
use super::windows::windows;
use crate::data::shares::trainer_of;
use crate::embeddings::{Fetch, Replicas, RowGradients, clip, dense_squares, squares};
use crate::faults;
use crate::pipeline::{self, Deliveries};
use crate::session::{Keys, Session};
use crate::state::{OptimizerState, TrainState};
use crate::step::{Gradients, PartStep};
use crate::telemetry::{Stages, Tally, processor};

/// The parts, of `parts`, that a rank trains.
pub fn mine(comm: &dyn Communicator, parts: usize) -> Vec<usize> {
    (0..parts).filter(|&part| trainer_of(part, comm.size(), parts) == comm.rank()).collect()
}

/// Model averaging over the parts of [`mine`], for which the steps have samplers.
pub(crate) struct ModelAveraging;

impl Synchronization<dyn PartStep + '_> for ModelAveraging {
    fn train(
        &self,
        session: &Session<'_>,
        steps: &(dyn PartStep + '_),
        comm: &dyn Communicator,
        mut state: TrainState,
    ) -> Result<TrainState> {
        let mut keeper = Keeper::new(session, comm);
        evaluate_left(session, steps, &mut keeper, &mut state)?;
        if state.progress.stopped {
            return Ok(state);
        }
        let training = steps.training();
        let mine = mine(comm, training.len());
        let mut optimizers = BTreeMap::new();
        let mut replicas = Vec::new();
        for &part in &mine {
            let mut optimizer = session.config.optimizer.build()?;
            let (specs, ids) = (session.tables, steps.embedding_ids_of(part));
            let mut own = Replicas::new(part, training[part], specs, ids)?;
            if let Some(saved) = state.optimizers.get(&part) {
                let (of_rows, of_weights): (OptimizerState, _) =
                    saved.iter().cloned().partition(|(entry, _)| Replicas::owns(entry));
                optimizer.load_state(&of_weights)?;
                own.load_state(&of_rows)?;
            }
            optimizers.insert(part, optimizer);
            replicas.push(own);
        }
        // One part has nothing to average: it trains as the whole graph does.
        let section = match training.len() {
            1 => AverageSection::none(),
            _ => session.config.average.clone(),
        };
        let mut outer = session.registry.outer_optimizer(&section, state.params.len())?;
        if state.progress.epoch > 0 {
            outer.load_state(&state.outer)?;
        }
        let moments = match section.moments {
            true => session.config.optimizer.build()?.moments(state.params.len()).len(),
            false => 0,
        };
        let trainer = Trainer {
            session,
            comm,
            steps,
            total: training.iter().sum(),
            training,
            vectors: 1 + moments,
            section,
            lengths: mine.iter().map(|&part| (part, steps.part_epoch(part, 1).len())).collect(),
            keys: Keys::new(session.config.train.seed),
            pool: pool(session.threads.each)?,
        };
        let specs = windows(session, state.progress.epoch).flat_map(|window| {
            mine.iter().flat_map(move |&part| {
                window.clone().flat_map(move |epoch| {
                    let specs = steps.part_epoch(part, epoch);
                    session.pulse.planned(epoch, &specs);
                    specs
                })
            })
        });
        let prepared_by = (&session.config.train, session.preparation_threads());
        pipeline::run(prepared_by, steps, Box::new(specs), |deliveries| {
            trainer.run(deliveries, keeper, state, (optimizers, replicas, outer))
        })
    }
}

/// What moves the weights: of each part, of its copies of embeddings, and of all parts together.
type Optimizers = (BTreeMap<usize, Box<dyn Optimizer>>, Vec<Replicas>, Box<dyn OuterOptimizer>);

struct Trainer<'a> {
    session: &'a Session<'a>,
    comm: &'a dyn Communicator,
    steps: &'a dyn PartStep,
    /// Number of training nodes of each part.
    training: Vec<usize>,
    total: usize,
    /// Vectors as long as the weights that a part shares.
    vectors: usize,
    section: AverageSection,
    /// Steps an epoch of each part that this rank trains.
    lengths: BTreeMap<usize, usize>,
    keys: Keys,
    pool: ThreadPool,
}

impl Trainer<'_> {
    fn run(
        &self,
        deliveries: &Deliveries<'_>,
        mut keeper: Keeper<'_>,
        mut state: TrainState,
        (mut optimizers, mut replicas, mut outer): Optimizers,
    ) -> Result<TrainState> {
        let (session, comm) = (self.session, self.comm);
        for window in windows(session, state.progress.epoch) {
            session.pulse.epochs_begin(window.clone());
            let start = Instant::now();
            let epochs = window.clone().count();
            let mut tallies = vec![Tally::default(); epochs];
            let mut shared = BTreeMap::new();
            for (number, table) in state.tables.iter().enumerate() {
                table.refresh(comm, number, &mut replicas)?;
            }
            for ((&part, optimizer), replicas) in optimizers.iter_mut().zip(&mut replicas) {
                let mut model = PartModel { params: state.params.clone(), replicas };
                for (epoch, tally) in window.clone().zip(&mut tallies) {
                    let cached = self.steps.cached();
                    let worked = processor::seconds(&self.pool);
                    self.part_epoch(
                        part,
                        epoch,
                        deliveries,
                        &mut model,
                        optimizer.as_mut(),
                        tally,
                    )?;
                    tally.count_cached(cached, self.steps.cached());
                    tally.processor += processor::seconds(&self.pool) - worked;
                }
                shared.insert(part, self.shared(&model.params, optimizer.as_mut()));
            }
            let reduce = Instant::now();
            let average = self.average(state.params.len() * self.vectors, &shared)?;
            let (weights, moments) = average.split_at(state.params.len());
            let lr = learning_rate(session.config, *window.end());
            outer.step(state.params.flat_mut(), weights, lr);
            if !moments.is_empty() {
                for optimizer in optimizers.values_mut() {
                    let own = optimizer.moments(weights.len());
                    let means = moments.chunks_exact(weights.len());
                    own.into_iter().zip(means).for_each(|(own, mean)| own.copy_from_slice(mean));
                }
            }
            for (number, table) in state.tables.iter_mut().enumerate() {
                table.average(comm, number, &replicas)?;
            }
            let reduce = reduce.elapsed().as_secs_f64();
            tallies[epochs - 1].stages.reduce += reduce;
            session.meter.spent(Stages { reduce, ..Stages::default() });
            let mut records = Vec::new();
            for (epoch, tally) in window.clone().zip(&tallies) {
                let ranks = gathered(comm, tally)?;
                let lr = learning_rate(session.config, epoch);
                let seconds = start.elapsed().as_secs_f64() / epochs as f64;
                records.push(Tally::record(&ranks, epoch, lr, seconds));
            }
            let judge = window.clone().any(|epoch| evaluates(session, epoch));
            // A part whose loss is not finite is detected here, where all ranks learn of it.
            let mut collect = |state: &mut TrainState| {
                state.outer = outer.state();
                collect(comm, state, &optimizers, &replicas)
            };
            let ended = (records, judge);
            close_epochs(session, self.steps, &mut keeper, &mut state, ended, &mut collect)?;
            if state.progress.stopped {
                break;
            }
        }
        Ok(state)
    }

    /// One part's pass over its training nodes.
    fn part_epoch(
        &self,
        part: usize,
        epoch: usize,
        deliveries: &Deliveries<'_>,
        model: &mut PartModel<'_>,
        optimizer: &mut dyn Optimizer,
        tally: &mut Tally,
    ) -> Result<()> {
        if self.training[part] == 0 {
            return Ok(());
        }
        let PartModel { params, replicas } = model;
        let config = self.session.config;
        let base = learning_rate(config, epoch);
        let length = self.lengths[&part];
        let before = (epoch - 1) * length;
        let total = config.train.epochs * length;
        let mut grads = vec![0.0; params.len()];
        for step in 0.. {
            let mode = training(config, self.keys.dropout(epoch, part, step));
            let lr = base * self.section.warmup_factor(before + step, total);
            let counted = *tally;
            grads.fill(0.0);
            let mut rows = vec![RowGradients::default(); self.session.tables.len()];
            let mut gradients = Gradients { dense: &mut grads, rows: &mut rows };
            let now = (&*params, &**replicas as &dyn Fetch);
            let (steps, pool) = (self.steps, &self.pool);
            let (spec, loss) = consume(steps, deliveries, now, mode, pool, &mut gradients, tally)?;
            tally.loss += loss.sum;
            tally.weight += loss.weight;
            let start = Instant::now();
            let update = profile::stage("update");
            if loss.weight > 0.0 {
                let weight = loss.weight as f32;
                let mut rows = self.pool.install(|| replicas.sum(&rows))?;
                let sparse = rows.iter_mut().flat_map(|summed| summed.grads_mut());
                grads.iter_mut().chain(sparse).for_each(|g| *g /= weight);
                let squares = self.pool.install(|| dense_squares(&grads) + squares(&rows));
                tally.squares += squares;
                tally.steps += 1;
                if config.train.clip_norm > 0.0 {
                    clip(&mut grads, &mut rows, squares, config.train.clip_norm);
                }
                // Without a warm-up: an embedding is in few steps, of which none is to be lost.
                let rate = base * config.embedding.rate(config.train.lr);
                self.pool.install(|| {
                    optimizer.step(params.flat_mut(), &grads, lr);
                    replicas.apply(&rows, rate);
                });
            }
            drop(update);
            tally.stages.compute += start.elapsed().as_secs_f64();
            let added = tally.since(&counted);
            self.session.meter.step(&added);
            self.session.pulse.step(&added);
            if spec.last_of_epoch {
                break;
            }
        }
        Ok(())
    }

    /// What a part shares: its weights, followed by the moments of its optimizer if they are averaged too.
    fn shared(&self, params: &Params, optimizer: &mut dyn Optimizer) -> Vec<f32> {
        let mut shared = params.flat().to_vec();
        if self.vectors > 1 {
            for moment in optimizer.moments(params.len()) {
                shared.extend_from_slice(moment);
            }
        }
        shared
    }

    /// `Σ αᵢ Wᵢ` with αᵢ the share of part i in the training nodes, added in part order so that
    /// the sum does not depend on the assignment of parts to ranks. `own` has the vectors Wᵢ of this rank's parts, of
    /// length `len` each.
    fn average(&self, len: usize, own: &BTreeMap<usize, Vec<f32>>) -> Result<Vec<f32>> {
        let mut sum = vec![0f32; len];
        let mut weights = vec![0f32; len];
        for (part, &training) in self.training.iter().enumerate() {
            if let Some(own) = own.get(&part) {
                weights.copy_from_slice(own);
            }
            let owner = trainer_of(part, self.comm.size(), self.training.len());
            faults::reached("reduce");
            self.comm.broadcast("weights of a part", owner, &mut weights)?;
            let share = training as f32 / self.total as f32;
            for (s, w) in sum.iter_mut().zip(&weights) {
                *s += share * w;
            }
        }
        Ok(sum)
    }
}

/// The model of a part.
struct PartModel<'a> {
    params: Params,
    replicas: &'a mut Replicas,
}
