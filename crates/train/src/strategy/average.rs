//! `average`: model averaging (CATGNN §3.3). Every part trains a model of its own; every
//! `sync_every` epochs the weights are averaged in proportion to the parts' training nodes. Parts
//! are dealt to the ranks in turn; a rank with several trains them one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use gnarl_engine::Communicator;
use gnarl_graph::{Error, Result};
use gnarl_nn::Params;
use gnarl_nn::optim::{self, Optimizer};
use rayon::ThreadPool;

use super::{
    CheckpointClock, Keys, Session, close_epochs, consume, evaluates, learning_rate, pool,
};
use crate::embeddings::Learnt;
use crate::faults;
use crate::history::{Stages, Tally};
use crate::learner::Gradients;
use crate::nodes::{NodeLearner, Nodes, Prepared};
use crate::pipeline::{self, Deliveries};
use crate::state::{OptimizerState, TrainState};
use crate::task::TaskGraph;

/// Trains parts, or the whole graph as the only one. Nothing but weights is averaged: the task has no
/// learnt rows.
pub fn train(
    session: &Session<'_>,
    nodes: &Nodes,
    rank: &dyn Communicator,
    state: TrainState,
) -> Result<TrainState> {
    if state.progress.stopped {
        return Ok(state);
    }
    let parts = nodes.parts();
    let mine: Vec<usize> = (rank.rank()..parts.len()).step_by(rank.size()).collect();
    let mut optimizers = BTreeMap::new();
    for &part in &mine {
        let mut optimizer = session.config.optimizer.build()?;
        if let Some(saved) = state.optimizers.get(&part) {
            optimizer.load_state(saved)?;
        }
        optimizers.insert(part, optimizer);
    }
    let learner = NodeLearner::new(nodes, parts, &mine)?;
    let trainer = Trainer {
        session,
        rank,
        learner: &learner,
        parts,
        mine: &mine,
        keys: Keys::new(session.config.train.seed),
        total: parts.iter().map(|p| p.train.len()).sum(),
        pool: pool(session.threads)?,
    };
    let jobs = windows(session, state.progress.epoch).flat_map(|window| {
        let (learner, mine) = (&learner, mine.iter());
        mine.flat_map(move |&part| {
            window.clone().flat_map(move |epoch| learner.part_epoch(part, epoch))
        })
    });
    pipeline::run(&session.config.train, &learner, jobs, |deliveries| {
        trainer.run(deliveries, state, optimizers)
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

struct Trainer<'a> {
    session: &'a Session<'a>,
    rank: &'a dyn Communicator,
    learner: &'a NodeLearner<'a>,
    parts: &'a [Arc<TaskGraph>],
    mine: &'a [usize],
    keys: Keys,
    /// Training nodes of all parts.
    total: usize,
    pool: ThreadPool,
}

impl Trainer<'_> {
    fn run(
        &self,
        deliveries: &Deliveries<'_, Prepared>,
        mut state: TrainState,
        mut optimizers: BTreeMap<usize, Box<dyn Optimizer>>,
    ) -> Result<TrainState> {
        let (session, rank) = (self.session, self.rank);
        let mut clock = CheckpointClock::new(session);
        for window in windows(session, state.progress.epoch) {
            let start = Instant::now();
            let epochs = window.clone().count();
            let mut tallies = vec![Tally::default(); epochs];
            let mut models = BTreeMap::new();
            for &part in self.mine {
                let mut params = state.params.clone();
                let optimizer = optimizers.get_mut(&part).expect("one for each own part");
                for (epoch, tally) in window.clone().zip(&mut tallies) {
                    self.part_epoch(
                        part,
                        epoch,
                        deliveries,
                        &mut params,
                        optimizer.as_mut(),
                        tally,
                    )?;
                }
                models.insert(part, params);
            }
            let reduce = Instant::now();
            self.average(&mut state.params, &models)?;
            let reduce = reduce.elapsed().as_secs_f64();
            tallies[epochs - 1].stages.reduce += reduce;
            session.meter.spent(Stages { reduce, ..Stages::default() });
            let mut records = Vec::new();
            for (epoch, tally) in window.clone().zip(&tallies) {
                let mut sums = tally.to_array();
                rank.all_reduce_f64("epoch figures", &mut sums)?;
                let lr = learning_rate(session.config, epoch);
                let seconds = start.elapsed().as_secs_f64() / epochs as f64;
                records.push(Tally::record(&sums, epoch, lr, seconds, rank.size()));
            }
            let judge = window.clone().any(|epoch| evaluates(session, epoch));
            close_epochs(session, self.learner, rank, &mut state, records, judge)?;
            let finished = state.progress.stopped || *window.end() == session.config.train.epochs;
            if clock.due(rank, finished)? {
                self.collect(&mut state, &optimizers)?;
                if rank.rank() == 0 {
                    (session.on_checkpoint)(&state, &[])?;
                }
            }
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
        deliveries: &Deliveries<'_, Prepared>,
        params: &mut Params,
        optimizer: &mut dyn Optimizer,
        tally: &mut Tally,
    ) -> Result<()> {
        if self.parts[part].train.is_empty() {
            return Ok(());
        }
        let config = self.session.config;
        let lr = learning_rate(config, epoch);
        let mut grads = vec![0.0; params.len()];
        for step in 0.. {
            let key = self.keys.dropout(epoch, part, step);
            let before = *tally;
            grads.fill(0.0);
            let mut gradients = Gradients { dense: &mut grads, rows: &mut [] };
            let now = (&*params, Learnt { tables: &[], rank: self.rank });
            let (learner, pool) = (self.learner, &self.pool);
            let (job, loss) = consume(learner, deliveries, now, key, pool, &mut gradients, tally)?;
            tally.loss += loss.sum;
            tally.weight += loss.weight;
            let start = Instant::now();
            if loss.weight > 0.0 {
                let weight = loss.weight as f32;
                grads.iter_mut().for_each(|g| *g /= weight);
                if config.train.clip_norm > 0.0 {
                    optim::clip_by_global_norm(&mut grads, config.train.clip_norm);
                }
                self.pool.install(|| optimizer.step(params.flat_mut(), &grads, lr));
            }
            tally.stages.compute += start.elapsed().as_secs_f64();
            self.session.meter.step(&tally.since(&before));
            if job.last_of_epoch {
                break;
            }
        }
        Ok(())
    }

    /// `Σ αᵢ Wᵢ` with αᵢ the share of part i in the training nodes, added in part order so that
    /// the sum does not depend on how parts are dealt to ranks.
    fn average(&self, params: &mut Params, models: &BTreeMap<usize, Params>) -> Result<()> {
        let mut sum = vec![0f32; params.len()];
        let mut weights = vec![0f32; params.len()];
        for (part, graph) in self.parts.iter().enumerate() {
            if let Some(model) = models.get(&part) {
                weights.copy_from_slice(model.flat());
            }
            let owner = part % self.rank.size();
            faults::reached("reduce");
            self.rank.broadcast("weights of a part", owner, &mut weights)?;
            let share = graph.train.len() as f32 / self.total as f32;
            for (s, w) in sum.iter_mut().zip(&weights) {
                *s += share * w;
            }
        }
        params.flat_mut().copy_from_slice(&sum);
        Ok(())
    }

    /// Brings the optimizer states of all parts together for the checkpoint.
    fn collect(
        &self,
        state: &mut TrainState,
        optimizers: &BTreeMap<usize, Box<dyn Optimizer>>,
    ) -> Result<()> {
        let own: Vec<(usize, OptimizerState)> =
            optimizers.iter().map(|(&part, o)| (part, o.state())).collect();
        let broken = |e: serde_json::Error| Error::invalid(format!("optimizer state: {e}"));
        let bytes = serde_json::to_vec(&own).map_err(broken)?;
        for bytes in self.rank.all_gather("optimizer state", &bytes)? {
            let theirs: Vec<(usize, OptimizerState)> =
                serde_json::from_slice(&bytes).map_err(broken)?;
            state.optimizers.extend(theirs);
        }
        Ok(())
    }
}
