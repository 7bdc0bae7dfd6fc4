//! What a run and its strategies need to know of a task. Each task is a folder of its own.

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Dataset, Result};
use gnarl_nn::{Params, Tape, Tensor, Var};
use gnarl_partition::PartitionedDataset;
use gnarl_sample::Scratch;

use crate::embeddings::{RowGradients, Rows};
use crate::evaluate::Evaluation;
use crate::pipeline::Job;
use crate::state::TrainState;
use crate::strategy::{Session, Threads};

/// A task as a run sees it: opened, with its model, and ready to be trained by any number of ranks.
pub trait Task: Send + Sync {
    /// The score that decides which weights are best, as a key of scores.
    fn metric(&self) -> String;

    /// Counts of what is learnt from, and of what it is judged by.
    fn sizes(&self) -> Sizes;

    /// Takes note of how the graph was cut: which part each node is in, and the parts themselves where
    /// the strategy trains on them. `dataset` is the whole, if this machine has it.
    ///
    /// # Errors
    /// If the task cannot be trained on such a cut.
    fn divide(&mut self, dataset: Option<&Dataset>, cut: &PartitionedDataset) -> Result<()>;

    /// Trains from `state` to the last epoch or until patience ends, as one rank; all return the same.
    ///
    /// # Errors
    /// Those of sampling and of the other ranks.
    fn train(
        &self,
        session: &Session<'_>,
        rank: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState>;

    /// Judges weights and all learnt rows on the whole graph, on one machine.
    ///
    /// # Errors
    /// If they do not fit the graph.
    fn judge(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Evaluation>;
}

/// Counts of a task.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// What is in the splits: `"nodes"` or `"edges"`.
    pub of: &'static str,
    /// Classes, tasks or numbers that are predicted; 0 of none.
    pub outputs: usize,
    /// To train, validate and test on.
    pub splits: [usize; 3],
}

/// A task as a strategy and the pipeline see it. What a batch is is the task's own affair: it goes
/// through the stages sample, fetch and compact ahead of compute, each a pure function of the job.
pub trait Learner: Sync {
    /// A batch as it comes out of the stage `sample`.
    type Sampled: Send;
    /// A batch ready for compute.
    type Batch: Send + Sync;

    /// The jobs of `epoch` (from 1) that rank `rank` of `size` has. There are as many steps on every
    /// rank, and what all of them do in a step together does not depend on `size`.
    fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<Job>;

    /// Draws what the batch of a job consists of.
    ///
    /// # Errors
    /// If a part of the graph does not answer.
    fn sample(&self, job: &Job, scratch: &mut Scratch) -> Result<Self::Sampled>;

    /// Gathers rows that training does not change, wherever they are.
    ///
    /// # Errors
    /// If they cannot be had.
    fn fetch(&self, job: &Job, sampled: Self::Sampled) -> Result<Self::Batch>;

    /// Prepares what backward needs too.
    fn compact(&self, _batch: &Self::Batch) {}

    /// What is counted of a batch.
    fn counts(&self, batch: &Self::Batch) -> Counts;

    /// Ids of the learnt rows a batch reads, distinct, for each table of the state in order. They are
    /// fetched from all ranks when the batch is computed, after the updates of all steps before: where
    /// there are tables, every rank has as many jobs a step.
    fn rows<'b>(&self, _batch: &'b Self::Batch) -> Vec<&'b [u64]> {
        Vec::new()
    }

    /// Adds the gradient of the summed loss of a batch to `gradients`. Dividing by the weight of the
    /// whole step is left to the caller, so that the batches of all ranks add up. `key` stands for the
    /// run's seed and the step; it decides what dropout drops.
    ///
    /// # Errors
    /// If shapes disagree.
    fn gradient(
        &self,
        params: &Params,
        batch: Inputs<'_, Self::Batch>,
        key: Key,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss>;

    /// Judges the state. All ranks call it together and return the same.
    ///
    /// # Errors
    /// If shapes disagree or a rank fails.
    fn evaluate(
        &self,
        state: &TrainState,
        rank: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation>;

    /// Rows of other machines that a cache had, and had not, so far.
    fn cached(&self) -> [u64; 2] {
        [0; 2]
    }

    /// What exchanges of rows and columns took of this rank so far; `None` if there are none.
    fn exchanges(&self) -> Option<Exchanges> {
        None
    }
}

/// Exchanges of rows and columns, as one rank counts them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exchanges {
    /// Bytes sent to others in forward and in backward passes of training.
    pub bytes: [u64; 2],
    /// Time of sending and receiving, waiting for others included, in nanoseconds.
    pub nanos: u64,
    /// Own columns that messages passed over, added up over the passes.
    pub columns: u64,
}

/// A batch, and the learnt rows it asked for.
pub struct Inputs<'a, B> {
    /// The batch, as the pipeline made it.
    pub batch: &'a B,
    /// Which of the worker's graphs it is of.
    pub graph: usize,
    /// For each table the rows of [`Learner::rows`], in that order.
    pub rows: Vec<Tensor>,
}

/// Where the gradients of a step go.
pub struct Gradients<'a> {
    /// Of the weights, laid out like [`Params::flat`].
    pub dense: &'a mut [f32],
    /// Of the learnt rows, for each table.
    pub rows: &'a mut [RowGradients],
}

impl Gradients<'_> {
    /// Adds those that `tape` has of learnt rows: a leaf, and the ids of its rows, for each table.
    pub fn add_rows(&mut self, tape: &Tape<'_>, leaves: &[Var], ids: &[Vec<u64>]) {
        for ((leaf, ids), out) in leaves.iter().zip(ids).zip(&mut *self.rows) {
            if let Some(grad) = tape.grad(*leaf) {
                out.push(ids, grad);
            }
        }
    }

    /// The same of rows at some places of each leaf.
    pub fn add_some_rows(
        &mut self,
        tape: &Tape<'_>,
        leaves: &[Var],
        ids: &[Vec<u64>],
        places: &[Vec<u32>],
    ) {
        let tables = leaves.iter().zip(ids).zip(places).zip(&mut *self.rows);
        for (((leaf, ids), places), out) in tables {
            if let Some(grad) = tape.grad(*leaf) {
                let own: Vec<u64> = places.iter().map(|&place| ids[place as usize]).collect();
                let rows = places.iter().flat_map(|&place| grad.row(place as usize)).copied();
                out.push(&own, &Tensor::from_vec(own.len(), grad.cols(), rows.collect()));
            }
        }
    }
}

/// Sizes of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Sampled edges.
    pub edges: u64,
    /// Seeds: nodes, or edges, that the loss is of.
    pub seeds: u64,
}

/// What a batch adds to its step.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchLoss {
    /// Sum of the (weighted) losses of the targets.
    pub sum: f64,
    /// What the sum is to be divided by: the number of targets; target weights average 1.
    pub weight: f64,
}
