//! Steps over the whole graph for node prediction, chunk by chunk.

use std::ops::Range;

use gnarl_common::Result;
use gnarl_common::threads::pool;
use gnarl_engine::Communicator;
use gnarl_graph::blocks::Block;
use gnarl_nn::models::Stages;
use gnarl_nn::pool::{Kept, Limited, keep_all, keep_at_most};
use gnarl_nn::{Exchange, Mode, Params, Tensor};
use gnarl_sample::Scratch;

use super::comm_thread::CommThread;
use super::layout::Layout;
use super::plan::Plan;
use super::program::{Program, Step};
use super::schedule::Schedule;
use crate::data::batch::BatchSpec;
use crate::data::graph::Graph;
use crate::evaluation::{Evaluation, NodeScores, within};
use crate::session::Threads;
use crate::state::TrainState;
use crate::step::tensor_parallel::Columns;
use crate::step::{BatchLoss, Counts, Exchanges, Gradients, Inputs, TrainStep};

/// One rank's share of the only batch.
pub(crate) struct Chunked<'a> {
    block: &'a Block,
    scores: NodeScores<'a>,
    columns: Columns<'a>,
    layout: Layout,
    plan: &'a Plan,
    program: Program<'a>,
    _buffers: Buffers,
}

/// The treatment of free buffers.
enum Buffers {
    /// They count as memory as well.
    Limited { _guard: Limited },
    /// All are kept, as every step asks for the same ones.
    Kept { _guard: Kept },
}

impl<'a> Chunked<'a> {
    /// Steps of `model` over the `block` of `graph`, by `plan`.
    pub fn new(
        model: &'a dyn Stages,
        (block, graph): (&'a Block, &'a Graph),
        scores: NodeScores<'a>,
        comm: &'a dyn Communicator,
        plan: &'a Plan,
    ) -> Self {
        let layout = plan.layout;
        let frugal = plan.free.is_some();
        let features = graph.features.as_ref();
        let program = Program::new(model, block, features, layout, &plan.place, frugal);
        let columns = Columns::new(comm, block.num_src());
        let _buffers = match plan.free {
            Some(bytes) => Buffers::Limited { _guard: keep_at_most(bytes) },
            None => Buffers::Kept { _guard: keep_all() },
        };
        Self { block, scores, columns, layout, plan, program, _buffers }
    }

    /// This rank's training nodes.
    fn training(&self) -> &[u32] {
        within(&self.scores.targets.train, &self.columns.rows())
    }

    /// Scores of `params` on validation and test nodes, together with all ranks.
    ///
    /// # Errors
    /// Those of files and of other ranks.
    pub fn evaluate_by(
        &self,
        params: &Params,
        comm: &dyn Communicator,
        threads: usize,
    ) -> Result<Evaluation> {
        if self.layout.ranks == 1 {
            let mut scoring = self.scores.begin();
            self.visit(params, threads, &mut |range, logits| scoring.add(range, logits))?;
            return Ok(scoring.finish());
        }
        let own = self.columns.rows();
        let scored = self.scores.targets.scored().map(|nodes| within(nodes, &own));
        let mut picked = [const { Vec::new() }; 3];
        let mut cols = 0;
        self.visit(params, threads, &mut |range, logits| {
            cols = logits.cols();
            for (picked, nodes) in picked.iter_mut().zip(scored) {
                picked.reserve_exact(nodes.len() * cols - picked.len());
                for &node in within(nodes, range) {
                    picked.extend_from_slice(logits.row(node as usize - range.start));
                }
            }
        })?;
        self.scores.of_shares(comm, picked, cols)
    }

    /// Calls `visit` with the logits of each of this rank's row blocks.
    fn visit(
        &self,
        params: &Params,
        threads: usize,
        visit: &mut (dyn FnMut(&Range<usize>, &Tensor) + Send),
    ) -> Result<()> {
        let run = || self.schedule(|schedule| self.program.evaluate(params, schedule, visit));
        pool(threads)?.install(run).map(drop)
    }

    /// Calls `run` with a schedule over all chunks; returns the bytes sent.
    fn schedule(&self, run: impl FnOnce(&mut Schedule<'_>) -> Result<()>) -> Result<[u64; 2]> {
        let columns = &self.columns;
        std::thread::scope(|scope| {
            let comm = if self.plan.overlap && self.layout.ranks > 1 {
                CommThread::beside(scope, columns)?
            } else {
                CommThread::inline(columns)
            };
            let mut schedule =
                Schedule::new(self.layout, &self.plan.place, comm, columns.counted());
            run(&mut schedule)?;
            Ok(schedule.sent)
        })
    }
}

impl TrainStep for Chunked<'_> {
    type Sampled = ();
    type Batch = ();

    fn epoch(&self, epoch: usize, _: usize, _: usize) -> Vec<BatchSpec> {
        vec![BatchSpec::whole(epoch)]
    }

    fn sample(&self, _: &BatchSpec, _: &mut Scratch) -> Result<()> {
        self.block.out_lists();
        Ok(())
    }

    fn fetch(&self, _: &BatchSpec, (): ()) -> Result<()> {
        Ok(())
    }

    fn counts(&self, (): &()) -> Counts {
        let edges = self.columns.columns(self.block.num_edges() * self.program.propagations());
        Counts { edges: edges.len() as u64, seeds: self.training().len() as u64, cached: [0; 2] }
    }

    fn gradient(
        &self,
        params: &Params,
        _: Inputs<'_, ()>,
        mode: Mode,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let targets = self.scores.targets;
        let mut sum = 0.0;
        let step = Step { params, mode };
        let sent = self.schedule(|schedule| {
            self.program.train(step, schedule, gradients.dense, &mut |tape, range, logits| {
                let nodes = within(&targets.train, range);
                let rows: Vec<u32> = nodes.iter().map(|v| v - range.start as u32).collect();
                let labels = targets.labels.of(nodes);
                let loss = self.scores.objective.loss(tape, logits, &rows, &labels, None);
                sum += f64::from(tape.value(loss).data()[0]);
                loss
            })
        })?;
        self.columns.counted().passes(sent);
        Ok(BatchLoss { sum, weight: self.training().len() as f64 })
    }

    fn evaluate(
        &self,
        state: &TrainState,
        comm: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        self.evaluate_by(&state.params, comm, threads.each)
    }

    fn exchanges(&self) -> Option<Exchanges> {
        Some(self.columns.counted().exchanges())
    }
}
