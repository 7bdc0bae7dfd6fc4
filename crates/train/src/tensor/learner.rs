//! Node classification by full-graph steps over shares of rows and columns, all in memory.

use std::sync::{Arc, Mutex, PoisonError};

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_graph::rng::Key;
use gnarl_nn::models::{Model, Remembered, Slices};
use gnarl_nn::pool::{Kept, keep_all, trim};
use gnarl_nn::{Exchange, Mode, Params, Tape, Tensor, Var};
use gnarl_sample::{Block, Scratch};
use rayon::prelude::*;

use super::share::Share;
use crate::evaluate::Evaluation;
use crate::learner::{BatchLoss, Counts, Exchanges, Gradients, Inputs, Learner};
use crate::nodes::loss::{add_loss, targets_of};
use crate::nodes::step;
use crate::pipeline::{Input, Job, rows};
use crate::state::TrainState;
use crate::strategy::{Threads, pool};
use crate::task::TaskGraph;

/// Feature rows read by one task.
const LOADED: usize = 4096;

/// One rank's share of the one batch there is.
pub(crate) struct TensorLearner<'a> {
    model: &'a dyn Model,
    block: Arc<Block>,
    share: Share<'a>,
    ids: Vec<u64>,
    /// The feature rows of the own nodes, as long as they are wanted.
    input: Mutex<Option<Input>>,
    /// What the first layer's messages make of the input.
    first: Remembered,
    /// Every step asks for the same buffers, however large.
    _buffers: Kept,
}

impl<'a> TensorLearner<'a> {
    /// A learner of `task` as `rank`.
    ///
    /// # Errors
    /// If the graph lies in parts, or is too large for a block.
    pub fn new(
        model: &'a dyn Model,
        task: &'a TaskGraph,
        metric: &'a str,
        rank: &'a dyn Communicator,
    ) -> Result<Self> {
        let block = task.whole_block()?;
        let share = Share::new(task, metric, rank, block.num_src());
        let ids = block.ids()[share.columns.rows()].to_vec();
        let (input, first, _buffers) = (Mutex::default(), Remembered::default(), keep_all());
        Ok(Self { model, block, share, ids, input, first, _buffers })
    }

    /// The feature rows of the own nodes. Their file is not in memory as well, but for a piece.
    fn load(&self) -> Result<Input> {
        let (own, features) = (self.share.columns.rows(), &self.share.task.features);
        let nodes: Vec<u32> = (own.start as u32..own.end as u32).collect();
        if features.is_sparse() {
            return rows(features.as_ref(), &nodes);
        }
        let width = features.width();
        let mut input = Tensor::scratch(nodes.len(), width);
        let pieces = input.data_mut().par_chunks_mut(LOADED * width.max(1));
        pieces.zip(nodes.par_chunks(LOADED)).try_for_each(|(out, nodes)| {
            features.gather_into(nodes, out)?;
            features.forget(nodes[0] as usize..nodes[0] as usize + nodes.len());
            Ok(())
        })?;
        Ok(Input::Dense(input))
    }

    /// The logits of the own nodes.
    fn logits<'t>(&'t self, tape: &mut Tape<'t>) -> Result<Var> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        if self.first.suffices() {
            let x = tape.absent(self.ids.len(), self.share.task.width());
            return self.forward(tape, x);
        }
        let loaded = input.take().map_or_else(|| self.load(), Ok)?;
        let x = step::input(tape, input.insert(loaded));
        let logits = self.forward(tape, x)?;
        if self.first.suffices() {
            *input = None;
            // No other buffer is as large as the input.
            trim();
        }
        Ok(logits)
    }

    fn forward<'t>(&'t self, tape: &mut Tape<'t>, x: Var) -> Result<Var> {
        let slices = Slices {
            block: &self.block,
            ids: &self.ids,
            exchange: &self.share.columns,
            input: Some((x, &self.first)),
        };
        self.model.forward_sliced(tape, &slices, x)
    }

    /// The rows of `nodes`, which ascend and are own ones.
    fn places(&self, nodes: &[u32]) -> Vec<u32> {
        let first = self.share.columns.rows().start as u32;
        nodes.iter().map(|v| v - first).collect()
    }
}

impl Learner for TensorLearner<'_> {
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
        self.share.counts(self.block.num_edges() * self.model.num_layers())
    }

    fn gradient(
        &self,
        params: &Params,
        _: Inputs<'_, ()>,
        key: Key,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let counted = self.share.columns.counted();
        let before = counted.sent();
        let mut tape = Tape::new(params, Mode::Train { key });
        let logits = self.logits(&mut tape)?;
        let nodes = self.share.training();
        let targets = targets_of(&self.share.task.labels, nodes);
        let loss = add_loss(&mut tape, logits, &self.places(nodes), &targets, None);
        tape.release(logits);
        let sum = f64::from(tape.value(loss).data()[0]);
        let between = counted.sent();
        tape.backward(loss, gradients.dense)?;
        counted.passes([between - before, counted.sent() - between]);
        Ok(BatchLoss { sum, weight: nodes.len() as f64 })
    }

    fn evaluate(
        &self,
        state: &TrainState,
        rank: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        let logits = pool(threads.each)?.install(|| {
            let mut tape = Tape::new(&state.params, Mode::Eval);
            let logits = self.logits(&mut tape)?;
            Ok(tape.take(logits))
        })?;
        let (task, own) = (self.share.task, self.share.columns.rows());
        let picked = [&task.valid, &task.test].map(|nodes| {
            let rows = self.places(self.share.within(nodes, &own)).into_iter();
            rows.flat_map(|row| logits.row(row as usize)).copied().collect()
        });
        self.share.evaluation(rank, picked, logits.cols())
    }

    fn exchanges(&self) -> Option<Exchanges> {
        Some(self.share.columns.counted().exchanges())
    }
}
