//! `gradient`: synchronous SGD (DistDGLv2 §5). A step's batch is the same whatever the number of
//! ranks: its seeds are split evenly, each rank taking mostly those of its own part, gradients of
//! the summed loss are added over the ranks and divided by the weight of the whole batch. Every
//! rank makes the same number of steps.

use std::time::Instant;

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_nn::optim::{self, Optimizer};

use super::units::{self, StepPlan};
use super::{CheckpointClock, Keys, Session, close_epochs, consume, evaluates, pool};
use crate::faults;
use crate::history::{EpochRecord, Tally};
use crate::pipeline::{self, Deliveries};
use crate::state::TrainState;

pub(super) fn train(
    session: &Session<'_>,
    rank: &dyn Communicator,
    mut state: TrainState,
) -> Result<TrainState> {
    let config = session.config;
    let mut optimizer = config.optimizer.build()?;
    if let Some(saved) = state.optimizers.get(&0) {
        optimizer.load_state(saved)?;
    }
    if state.progress.stopped {
        return Ok(state);
    }
    let graphs = [session.whole.clone()];
    let samplers = units::part_samplers(config, &graphs, &[0])?;
    let Some(sampler) = samplers[0].as_deref() else { return Ok(state) };
    let plan = StepPlan {
        session,
        sampler,
        rank: rank.rank(),
        size: rank.size(),
        keys: Keys::new(config.train.seed),
    };
    let jobs = (state.progress.epoch + 1..=config.train.epochs).flat_map(|e| plan.epoch(e));
    pipeline::run(&config.train, &graphs, &samplers, jobs, |deliveries| {
        let mut clock = CheckpointClock::new(session);
        let pool = pool(session.threads)?;
        let mut run = Run { session, rank, pool, plan: &plan };
        while state.progress.epoch < config.train.epochs && !state.progress.stopped {
            let epoch = state.progress.epoch + 1;
            let record = run.epoch(epoch, deliveries, &mut state, optimizer.as_mut())?;
            close_epochs(session, rank, &mut state, vec![record], evaluates(session, epoch))?;
            let finished = state.progress.stopped || epoch == config.train.epochs;
            if clock.due(rank, finished)? && rank.rank() == 0 {
                state.optimizers.insert(0, optimizer.state());
                (session.on_checkpoint)(&state)?;
            }
        }
        Ok(state)
    })
}

struct Run<'a> {
    session: &'a Session<'a>,
    rank: &'a dyn Communicator,
    pool: rayon::ThreadPool,
    plan: &'a StepPlan<'a>,
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
        let lr = units::learning_rate(self.session.config, epoch);
        let mut tally = Tally::default();
        let cached = || self.session.whole.features.cache_stats().unwrap_or_default();
        let before = cached();
        let mut step = 0;
        while !self.step(epoch, step, lr, deliveries, state, optimizer, &mut tally)? {
            step += 1;
        }
        let after = cached();
        tally.cached = [after.hits - before.hits, after.misses - before.misses];
        let mut sums = tally.to_array();
        self.rank.all_reduce_f64("epoch figures", &mut sums)?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(Tally::record(&sums, epoch, lr, seconds, self.rank.size()))
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
        let graphs = std::slice::from_ref(&self.session.whole);
        let key = self.plan.keys.dropout(epoch, 0, step);
        let length = state.params.len();
        let before = *tally;
        // The last two places carry the batch's loss and weight through the same all-reduce.
        let mut grads = vec![0.0; length + 2];
        let job = loop {
            let (params, grads) = (&state.params, &mut grads[..]);
            let (sums, totals) = grads.split_at_mut(length);
            let (delivery, loss) =
                consume(self.session, graphs, deliveries, params, key, &self.pool, sums, tally)?;
            totals[0] += loss.sum as f32;
            totals[1] += loss.weight as f32;
            tally.loss += loss.sum;
            tally.weight += loss.weight;
            if delivery.job.last_of_step {
                break delivery.job;
            }
        };
        let start = Instant::now();
        faults::reached("reduce");
        self.rank.all_reduce_sum("gradients", &mut grads)?;
        tally.stages.reduce += start.elapsed().as_secs_f64();
        let start = Instant::now();
        let weight = grads[length + 1];
        if weight > 0.0 {
            let grads = &mut grads[..length];
            grads.iter_mut().for_each(|g| *g /= weight);
            let clip = self.session.config.train.clip_norm;
            if clip > 0.0 {
                optim::clip_by_global_norm(grads, clip);
            }
            let params = state.params.flat_mut();
            self.pool.install(|| optimizer.step(params, grads, lr));
        }
        tally.stages.compute += start.elapsed().as_secs_f64();
        self.session.meter.step(&tally.since(&before));
        Ok(job.last_of_epoch)
    }
}
