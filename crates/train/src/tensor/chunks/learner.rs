//! Node classification by full-graph steps, chunk by chunk.

use std::ops::Range;

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_graph::rng::Key;
use gnarl_nn::models::Stages;
use gnarl_nn::pool::{Limited, keep_at_most};
use gnarl_nn::{Mode, Params, Tensor};
use gnarl_sample::{Block, Scratch};

use super::courier::Courier;
use super::layout::Layout;
use super::plan::Plan;
use super::program::{Program, Step};
use super::sweep::Sweep;
use crate::evaluate::Evaluation;
use crate::learner::{BatchLoss, Counts, Exchanges, Gradients, Inputs, Learner};
use crate::nodes::loss::{add_loss, targets_of};
use crate::pipeline::Job;
use crate::state::TrainState;
use crate::strategy::{Threads, pool};
use crate::tensor::share::Share;

/// One rank's share of the one batch there is.
pub(crate) struct ChunkLearner<'a> {
    block: &'a Block,
    share: Share<'a>,
    layout: Layout,
    plan: &'a Plan,
    program: Program<'a>,
    /// Free buffers are memory as well.
    _buffers: Option<Limited>,
}

impl<'a> ChunkLearner<'a> {
    /// A learner of `model`, as `plan` says.
    ///
    /// # Errors
    /// A usage error if the model does not pass messages in chunks.
    pub fn new(
        model: &'a dyn Stages,
        block: &'a Block,
        share: Share<'a>,
        plan: &'a Plan,
    ) -> Result<Self> {
        let features = share.task.features.as_ref();
        let layout = plan.layout;
        let frugal = plan.free.is_some();
        let program = Program::new(model, block, features, layout, &plan.place, frugal)?;
        let _buffers = plan.free.map(keep_at_most);
        Ok(Self { block, share, layout, plan, program, _buffers })
    }

    /// Judges `params` on validation and test nodes, together with all ranks.
    ///
    /// # Errors
    /// Those of files and of other ranks.
    pub fn judge(
        &self,
        params: &Params,
        rank: &dyn Communicator,
        threads: usize,
    ) -> Result<Evaluation> {
        let task = self.share.task;
        let (mut picked, mut cols) = ([Vec::new(), Vec::new()], 0);
        let mut visit = |range: &Range<usize>, logits: &Tensor| {
            cols = logits.cols();
            for (picked, nodes) in picked.iter_mut().zip([&task.valid, &task.test]) {
                for &v in self.share.within(nodes, range) {
                    picked.extend_from_slice(logits.row(v as usize - range.start));
                }
            }
        };
        pool(threads)?
            .install(|| self.sweep(|sweep| self.program.evaluate(params, sweep, &mut visit)))?;
        self.share.evaluation(rank, picked, cols)
    }

    /// Calls `run` with what sweeps over all chunks; returns what it sent.
    fn sweep(&self, run: impl FnOnce(&mut Sweep<'_>) -> Result<()>) -> Result<[u64; 2]> {
        let columns = &self.share.columns;
        std::thread::scope(|scope| {
            let courier = match self.plan.overlap && self.layout.ranks > 1 {
                true => Courier::beside(scope, columns)?,
                false => Courier::inline(columns),
            };
            let mut sweep = Sweep::new(self.layout, &self.plan.place, courier, columns.counted());
            run(&mut sweep)?;
            Ok(sweep.sent)
        })
    }
}

impl Learner for ChunkLearner<'_> {
    type Sampled = ();
    type Batch = ();

    fn epoch(&self, epoch: usize, _: usize, _: usize) -> Vec<Job> {
        vec![Job::whole(epoch)]
    }

    fn sample(&self, _: &Job, _: &mut Scratch) -> Result<()> {
        self.block.out_lists();
        Ok(())
    }

    fn fetch(&self, _: &Job, (): ()) -> Result<()> {
        Ok(())
    }

    fn counts(&self, (): &()) -> Counts {
        self.share.counts(self.block.num_edges() * self.program.propagations())
    }

    fn gradient(
        &self,
        params: &Params,
        _: Inputs<'_, ()>,
        key: Key,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let task = self.share.task;
        let (mut sum, step) = (0.0, Step { params, mode: Mode::Train { key } });
        let sent = self.sweep(|sweep| {
            self.program.train(step, sweep, gradients.dense, &mut |tape, range, logits| {
                let nodes = self.share.within(&task.train, range);
                let rows: Vec<u32> = nodes.iter().map(|v| v - range.start as u32).collect();
                let targets = targets_of(&task.labels, nodes);
                let loss = add_loss(tape, logits, &rows, &targets, None);
                sum += f64::from(tape.value(loss).data()[0]);
                loss
            })
        })?;
        self.share.columns.counted().passes(sent);
        Ok(BatchLoss { sum, weight: self.share.training().len() as f64 })
    }

    fn evaluate(
        &self,
        state: &TrainState,
        rank: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        self.judge(&state.params, rank, threads.each)
    }

    fn exchanges(&self) -> Option<Exchanges> {
        Some(self.share.columns.counted().exchanges())
    }
}
