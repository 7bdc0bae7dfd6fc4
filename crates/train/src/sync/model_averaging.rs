//! `average`: model averaging (CATGNN §3.3). Every part trains a model of its own; every
//! `sync_every` epochs the weights are averaged in proportion to the parts' training nodes, and so
//! are embeddings, over the parts with a replica. Parts are assigned to the ranks in turn; a rank
//! with several trains them one after the other.

use std::collections::BTreeMap;
use std::time::Instant;

use gnarl_common::threads::pool;
use gnarl_common::{Error, Result};
use gnarl_engine::Communicator;
use gnarl_nn::Params;
use gnarl_nn::optim::Optimizer;
use gnarl_nn::state::{vectors_from_bytes, vectors_to_bytes};
use rayon::ThreadPool;

use super::epoch::{close_epochs, consume, evaluates, gathered, learning_rate};
use super::keeper::Keeper;
use crate::embeddings::{Copies, Fetch, RowGradients, clip, squares};
use crate::faults;
use crate::pipeline::{self, Deliveries};
use crate::session::{Keys, Session};
use crate::state::{OptimizerState, TrainState};
use crate::step::{Gradients, PartStep};
use crate::telemetry::{Stages, Tally, processor};

/// The parts, of `parts`, that a rank trains.
pub fn mine(rank: &dyn Communicator, parts: usize) -> Vec<usize> {
    (rank.rank()..parts).step_by(rank.size()).collect()
}

/// Trains the parts of [`mine`], for which `steps` has samplers.
///
/// # Errors
/// Those of sampling and of the other ranks.
pub fn train<L: PartStep>(
    session: &Session<'_>,
    steps: &L,
    rank: &dyn Communicator,
    state: TrainState,
) -> Result<TrainState> {
    if state.progress.stopped {
        return Ok(state);
    }
    let training = steps.training();
    let mine = mine(rank, training.len());
    let (mut optimizers, mut copies) = (BTreeMap::new(), Vec::new());
    for &part in &mine {
        let mut optimizer = session.config.optimizer.build()?;
        let (specs, ids) = (session.tables, steps.embedding_ids_of(part));
        let mut own = Copies::new(part, training[part], specs, ids)?;
        if let Some(saved) = state.optimizers.get(&part) {
            let (of_rows, of_weights): (OptimizerState, _) =
                saved.iter().cloned().partition(|(entry, _)| Copies::owns(entry));
            optimizer.load_state(&of_weights)?;
            own.load_state(&of_rows)?;
        }
        optimizers.insert(part, optimizer);
        copies.push(own);
    }
    let trainer = Trainer {
        session,
        rank,
        steps,
        total: training.iter().sum(),
        training,
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
    pipeline::run(&session.config.train, steps, specs, |deliveries| {
        trainer.run(deliveries, state, (optimizers, copies))
    })
}

/// Epochs between two averagings, from `after` on; windows end at multiples of `sync_every`.
fn windows(
    session: &Session<'_>,
    after: usize,
) -> impl Iterator<Item = std::ops::RangeInclusive<usize>> + Send {
    let (every, last) = (session.config.train.sync_every, session.config.train.epochs);
    let mut next = after + 1;
    std::iter::from_fn(move || {
        let start = next;
        let end = (start.div_ceil(every) * every).min(last);
        next = end + 1;
        (start <= last).then_some(start..=end)
    })
}

struct Trainer<'a, L> {
    session: &'a Session<'a>,
    rank: &'a dyn Communicator,
    steps: &'a L,
    /// Number of training nodes of each part.
    training: Vec<usize>,
    total: usize,
    keys: Keys,
    pool: ThreadPool,
}

impl<L: PartStep> Trainer<'_, L> {
    fn run(
        &self,
        deliveries: &Deliveries<'_, L::Batch>,
        mut state: TrainState,
        (mut optimizers, mut copies): (BTreeMap<usize, Box<dyn Optimizer>>, Vec<Copies>),
    ) -> Result<TrainState> {
        let (session, rank) = (self.session, self.rank);
        let mut keeper = Keeper::new(session, rank);
        for window in windows(session, state.progress.epoch) {
            session.pulse.epochs_begin(window.clone());
            let start = Instant::now();
            let epochs = window.clone().count();
            let mut tallies = vec![Tally::default(); epochs];
            let mut models = BTreeMap::new();
            for (number, table) in state.tables.iter().enumerate() {
                table.refresh(rank, number, &mut copies)?;
            }
            for ((&part, optimizer), copies) in optimizers.iter_mut().zip(&mut copies) {
                let mut model = PartModel { params: state.params.clone(), copies };
                for (epoch, tally) in window.clone().zip(&mut tallies) {
                    let (optimizer, worked) = (optimizer.as_mut(), processor::seconds(&self.pool));
                    self.part_epoch(part, epoch, deliveries, &mut model, optimizer, tally)?;
                    tally.processor += processor::seconds(&self.pool) - worked;
                }
                models.insert(part, model.params);
            }
            let reduce = Instant::now();
            self.average(&mut state.params, &models)?;
            for (number, table) in state.tables.iter_mut().enumerate() {
                table.average(rank, number, &copies)?;
            }
            let reduce = reduce.elapsed().as_secs_f64();
            tallies[epochs - 1].stages.reduce += reduce;
            session.meter.spent(Stages { reduce, ..Stages::default() });
            let mut records = Vec::new();
            for (epoch, tally) in window.clone().zip(&tallies) {
                let ranks = gathered(rank, tally)?;
                let lr = learning_rate(session.config, epoch);
                let seconds = start.elapsed().as_secs_f64() / epochs as f64;
                records.push(Tally::record(&ranks, epoch, lr, seconds));
            }
            let judge = window.clone().any(|epoch| evaluates(session, epoch));
            // A part whose loss is not finite is detected here, where all ranks learn of it.
            close_epochs(session, self.steps, &mut keeper, &mut state, records, judge)?;
            keeper.after_epoch(&mut state, |state| self.collect(state, &optimizers, &copies))?;
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
        deliveries: &Deliveries<'_, L::Batch>,
        model: &mut PartModel<'_>,
        optimizer: &mut dyn Optimizer,
        tally: &mut Tally,
    ) -> Result<()> {
        if self.training[part] == 0 {
            return Ok(());
        }
        let PartModel { params, copies } = model;
        let config = self.session.config;
        let lr = learning_rate(config, epoch);
        let mut grads = vec![0.0; params.len()];
        for step in 0.. {
            let key = self.keys.dropout(epoch, part, step);
            let before = *tally;
            grads.fill(0.0);
            let mut rows = vec![RowGradients::default(); self.session.tables.len()];
            let mut gradients = Gradients { dense: &mut grads, rows: &mut rows };
            let now = (&*params, &**copies as &dyn Fetch);
            let (steps, pool) = (self.steps, &self.pool);
            let (spec, loss) = consume(steps, deliveries, now, key, pool, &mut gradients, tally)?;
            tally.loss += loss.sum;
            tally.weight += loss.weight;
            let start = Instant::now();
            if loss.weight > 0.0 {
                let (weight, mut rows) = (loss.weight as f32, copies.sum(&rows)?);
                let sparse = rows.iter_mut().flat_map(|summed| summed.grads_mut());
                grads.iter_mut().chain(sparse).for_each(|g| *g /= weight);
                if config.train.clip_norm > 0.0 {
                    let squares = squares(&rows);
                    clip(&mut grads, &mut rows, squares, config.train.clip_norm);
                }
                let rate = lr * config.embedding.rate(config.train.lr);
                self.pool.install(|| {
                    optimizer.step(params.flat_mut(), &grads, lr);
                    copies.apply(&rows, rate);
                });
            }
            tally.stages.compute += start.elapsed().as_secs_f64();
            let counted = tally.since(&before);
            self.session.meter.step(&counted);
            self.session.pulse.step(&counted);
            if spec.last_of_epoch {
                break;
            }
        }
        Ok(())
    }

    /// `Σ αᵢ Wᵢ` with αᵢ the share of part i in the training nodes, added in part order so that
    /// the sum does not depend on the assignment of parts to ranks.
    fn average(&self, params: &mut Params, models: &BTreeMap<usize, Params>) -> Result<()> {
        let mut sum = vec![0f32; params.len()];
        let mut weights = vec![0f32; params.len()];
        for (part, &training) in self.training.iter().enumerate() {
            if let Some(model) = models.get(&part) {
                weights.copy_from_slice(model.flat());
            }
            let owner = part % self.rank.size();
            faults::reached("reduce");
            self.rank.broadcast("weights of a part", owner, &mut weights)?;
            let share = training as f32 / self.total as f32;
            for (s, w) in sum.iter_mut().zip(&weights) {
                *s += share * w;
            }
        }
        params.flat_mut().copy_from_slice(&sum);
        Ok(())
    }

    /// Gathers the optimizer states of all parts for the checkpoint.
    fn collect(
        &self,
        state: &mut TrainState,
        optimizers: &BTreeMap<usize, Box<dyn Optimizer>>,
        copies: &[Copies],
    ) -> Result<()> {
        let own = optimizers.iter().zip(copies).flat_map(|((part, optimizer), copies)| {
            let entries = optimizer.state().into_iter().chain(copies.state());
            entries.map(move |(entry, values)| (format!("{part}.{entry}"), values))
        });
        let bytes = vectors_to_bytes(&own.collect::<Vec<_>>())?;
        let mut all: BTreeMap<usize, OptimizerState> = BTreeMap::new();
        for bytes in self.rank.all_gather("optimizer state", &bytes)? {
            for (name, values) in vectors_from_bytes(&bytes)? {
                let named = name
                    .split_once('.')
                    .and_then(|(part, entry)| Some((part.parse().ok()?, entry.to_string())));
                let broken = || Error::invalid(format!("optimizer state is named '{name}'"));
                let (part, entry) = named.ok_or_else(broken)?;
                all.entry(part).or_default().push((entry, values));
            }
        }
        state.optimizers.extend(all);
        Ok(())
    }
}

/// The model of a part.
struct PartModel<'a> {
    params: Params,
    copies: &'a mut Copies,
}
