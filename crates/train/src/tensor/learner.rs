//! Node classification by full-graph steps over shares of rows and columns.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Error, Kind, Result};
use gnarl_nn::models::{Model, Slices};
use gnarl_nn::pool::{Kept, keep_all};
use gnarl_nn::{Exchange, Mode, Params, Tape, Tensor, Var};
use gnarl_sample::{Block, Scratch, whole_graph};

use super::columns::Columns;
use crate::evaluate::{Evaluation, Judge};
use crate::learner::{BatchLoss, Counts, Exchanges, Gradients, Inputs, Learner};
use crate::nodes::loss::{add_loss, targets_of};
use crate::nodes::step;
use crate::pipeline::{Input, Job, rows};
use crate::state::TrainState;
use crate::strategy::pool;
use crate::task::TaskGraph;

/// One rank's share of the one batch there is.
pub(crate) struct TensorLearner<'a> {
    model: &'a dyn Model,
    task: &'a TaskGraph,
    metric: &'a str,
    block: Arc<Block>,
    columns: Columns<'a>,
    ids: Vec<u64>,
    own: Vec<u32>,
    /// What the first layer's messages make of the input.
    first: OnceLock<Tensor>,
    /// Every step asks for the same buffers, however large.
    _buffers: Kept,
    /// Bytes sent to other ranks in forward and in backward passes of training.
    exchanged: [AtomicU64; 2],
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
        let batch = whole_graph(task.held()?, 1)?;
        let [block] = &batch.blocks[..] else { return Err(Error::invalid("a graph of no block")) };
        let columns = Columns::new(rank, block.num_src());
        let nodes = columns.rows();
        let ids = block.ids()[nodes.clone()].to_vec();
        let own = (nodes.start as u32..nodes.end as u32).collect();
        let (block, first, exchanged) = (block.clone(), OnceLock::new(), Default::default());
        Ok(Self {
            model,
            task,
            metric,
            block,
            columns,
            ids,
            own,
            first,
            exchanged,
            _buffers: keep_all(),
        })
    }

    /// Those of `nodes`, which ascend, that are this rank's.
    fn mine<'n>(&self, nodes: &'n [u32]) -> &'n [u32] {
        let rows = self.columns.rows();
        let before = |end: usize| nodes.partition_point(|&v| (v as usize) < end);
        &nodes[before(rows.start)..before(rows.end)]
    }

    /// The rows of `nodes` among the own ones.
    fn places(&self, nodes: &[u32]) -> Vec<u32> {
        let first = self.columns.rows().start as u32;
        nodes.iter().map(|v| v - first).collect()
    }

    /// The logits of the own nodes.
    fn logits<'t>(&'t self, tape: &mut Tape<'t>, input: &Input) -> Result<Var> {
        let x = step::input(tape, input);
        let slices = Slices {
            block: &self.block,
            ids: &self.ids,
            exchange: &self.columns,
            input: Some((x, &self.first)),
        };
        self.model.forward_sliced(tape, &slices, x)
    }

    /// The logits of `nodes` on every rank, of which each has those of its own in `logits`.
    fn shared(&self, rank: &dyn Communicator, nodes: &[u32], logits: &Tensor) -> Result<Tensor> {
        let own = self.places(self.mine(nodes));
        let rows = own.iter().flat_map(|&row| logits.row(row as usize)).copied();
        let values: Vec<f32> = rows.collect();
        let all = rank.all_gather("evaluation", bytemuck::cast_slice(&values))?;
        let values: Vec<f32> = (all.iter().flat_map(|bytes| bytes.as_chunks().0))
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        if values.len() != nodes.len() * logits.cols() {
            let message = format!("evaluation: {} values of {} nodes", values.len(), nodes.len());
            return Err(Error::new(Kind::Rank, message));
        }
        Ok(Tensor::from_vec(nodes.len(), logits.cols(), values))
    }
}

impl Learner for TensorLearner<'_> {
    type Sampled = ();
    type Batch = Input;

    fn epoch(&self, epoch: usize, _: usize, _: usize) -> Vec<Job> {
        vec![Job {
            graph: 0,
            // The one batch there is; also of a rank without training nodes.
            batch: [0].into(),
            share: 0..1,
            key: Key::new(epoch as u64),
            fixed: true,
            last_of_step: true,
            last_of_epoch: true,
        }]
    }

    fn sample(&self, _: &Job, _: &mut Scratch) -> Result<()> {
        self.block.transpose();
        Ok(())
    }

    fn fetch(&self, _: &Job, (): ()) -> Result<Input> {
        rows(self.task.features.as_ref(), &self.own)
    }

    /// The edges of each rank are its share of the columns of all.
    fn counts(&self, _: &Input) -> Counts {
        let edges = self.columns.columns(self.block.num_edges() * self.model.num_layers()).len();
        Counts { edges: edges as u64, seeds: self.mine(&self.task.train).len() as u64 }
    }

    fn gradient(
        &self,
        params: &Params,
        inputs: Inputs<'_, Input>,
        key: Key,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let before = self.columns.sent();
        let mut tape = Tape::new(params, Mode::Train { key });
        let logits = self.logits(&mut tape, inputs.batch)?;
        let nodes = self.mine(&self.task.train);
        let targets = targets_of(&self.task.labels, nodes);
        let loss = add_loss(&mut tape, logits, &self.places(nodes), &targets, None);
        let sum = f64::from(tape.value(loss).data()[0]);
        let between = self.columns.sent();
        tape.backward(loss, gradients.dense)?;
        let sent = [between - before, self.columns.sent() - between];
        for (total, bytes) in self.exchanged.iter().zip(sent) {
            total.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(BatchLoss { sum, weight: nodes.len() as f64 })
    }

    fn evaluate(
        &self,
        state: &TrainState,
        rank: &dyn Communicator,
        threads: usize,
    ) -> Result<Evaluation> {
        let input = rows(self.task.features.as_ref(), &self.own)?;
        let logits = pool(threads)?.install(|| {
            let mut tape = Tape::new(&state.params, Mode::Eval);
            let logits = self.logits(&mut tape, &input)?;
            Ok(tape.take(logits))
        })?;
        let mut judges = [Judge::new(self.metric)?, Judge::new(self.metric)?];
        for (judge, nodes) in judges.iter_mut().zip([&self.task.valid, &self.task.test]) {
            let logits = self.shared(rank, nodes, &logits)?;
            let rows: Vec<u32> = (0..nodes.len() as u32).collect();
            judge.add(&self.task.labels, &logits, &rows, nodes);
        }
        Ok(Evaluation::of(&judges[0], &judges[1]))
    }

    fn exchanges(&self) -> Option<Exchanges> {
        Some(Exchanges {
            bytes: [0, 1].map(|pass| self.exchanged[pass].load(Ordering::Relaxed)),
            nanos: self.columns.nanos(),
            columns: self.columns.taken(),
        })
    }
}
