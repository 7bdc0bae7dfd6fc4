//! The traits of steps, with their inputs and outputs.

use gnarl_common::Result;
use gnarl_engine::Communicator;
use gnarl_nn::{Mode, Params, Tape, Tensor, Var};
use gnarl_sample::Scratch;

use crate::data::batch::BatchSpec;
use crate::embeddings::RowGradients;
use crate::evaluation::Evaluation;
use crate::session::Threads;
use crate::state::TrainState;

/// The steps of one rank. A batch goes through the stages sample, fetch and prepare ahead of compute, each a pure
/// function of its [`BatchSpec`].
pub trait TrainStep: Sync {
    /// The output of the stage `sample`.
    type Sampled: Send;
    /// A batch ready for compute.
    type Batch: Send + Sync;

    /// The batch schedule of `epoch` (from 1) for rank `rank` of `size`. The number of steps is
    /// equal on every rank, and the joint result of a step does not depend on `size`.
    fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<BatchSpec>;

    /// Samples a batch.
    ///
    /// # Errors
    /// If a part of the graph does not reply.
    fn sample(&self, spec: &BatchSpec, scratch: &mut Scratch) -> Result<Self::Sampled>;

    /// Batches to sample ahead of those that are fetched, beside `train.prefetch`: they are asked for elsewhere.
    fn ahead(&self) -> usize {
        0
    }

    /// Seconds that sampling of a batch waited for parts to be read into memory.
    fn loading(&self, _sampled: &Self::Sampled) -> f64 {
        0.0
    }

    /// True if the batch comes from a batch worker or a file, so that fetching it is waiting for it.
    fn is_received(&self, _sampled: &Self::Sampled) -> bool {
        false
    }

    /// Gathers features, local and remote.
    ///
    /// # Errors
    /// If features cannot be read.
    fn fetch(&self, spec: &BatchSpec, sampled: Self::Sampled) -> Result<Self::Batch>;

    /// Builds the transposes for the backward pass.
    fn prepare(&self, _batch: &Self::Batch) {}

    /// Sizes of a batch.
    fn counts(&self, batch: &Self::Batch) -> Counts;

    /// Ids of the embeddings a batch reads, distinct, one list per table of the state in order. They are
    /// fetched from all ranks when the batch is computed, after the updates of all steps before: where
    /// there are tables, every rank has as many batches a step.
    fn embedding_ids<'b>(&self, _batch: &'b Self::Batch) -> Vec<&'b [u64]> {
        Vec::new()
    }

    /// Adds the gradient of the summed loss of a batch to `gradients`. Dividing by the weight of the
    /// whole step is left to the caller, so that the batches of all ranks add up. `mode` is that of
    /// training, with a key of the run's seed and the step, which decides what dropout drops.
    ///
    /// # Errors
    /// If shapes disagree.
    fn gradient(
        &self,
        params: &Params,
        batch: Inputs<'_, Self::Batch>,
        mode: Mode,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss>;

    /// Scores of the state. A collective of all ranks, which return the same.
    ///
    /// # Errors
    /// If shapes disagree or a rank fails.
    fn evaluate(
        &self,
        state: &TrainState,
        comm: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation>;

    /// Remote features that the graph had cached, and that it had not, so far.
    fn cached(&self) -> [u64; 2] {
        [0; 2]
    }

    /// Batch workers that live; 0 if the ranks prepare their batches themselves.
    fn batch_workers(&self) -> usize {
        0
    }

    /// Bytes of parts read into memory since it was last asked, by the ranks of this process.
    fn read_bytes(&self) -> u64 {
        0
    }

    /// Counters of this rank's exchanges so far; `None` if there are none.
    fn exchanges(&self) -> Option<Exchanges> {
        None
    }
}

/// Counters of one rank's exchanges.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exchanges {
    /// Bytes sent to others in forward and in backward passes of training.
    pub bytes: [u64; 2],
    /// Time of sending and receiving, waiting for others included, in nanoseconds.
    pub nanos: u64,
    /// Own columns that messages passed over, summed over the passes.
    pub columns: u64,
}

/// A batch with its embeddings.
pub struct Inputs<'a, B> {
    /// The batch, as the pipeline made it.
    pub batch: &'a B,
    /// Index of the worker's graph.
    pub graph: usize,
    /// Per table the embeddings of [`TrainStep::embedding_ids`], in that order.
    pub embeddings: Vec<Tensor>,
}

/// Accumulators of a step's gradients.
pub struct Gradients<'a> {
    /// Of the weights, laid out like [`Params::flat`].
    pub dense: &'a mut [f32],
    /// Of the embeddings, one per table.
    pub rows: &'a mut [RowGradients],
}

impl Gradients<'_> {
    /// Adds the gradients of leaves on `tape`, one leaf per table with the ids of its rows.
    pub fn add_rows(&mut self, tape: &Tape<'_>, leaves: &[Var], ids: &[Vec<u64>]) {
        for ((leaf, ids), out) in leaves.iter().zip(ids).zip(&mut *self.rows) {
            if let Some(grad) = tape.grad(*leaf) {
                out.push(ids, grad.clone());
            }
        }
    }

    /// Adds the gradients of rows at some positions of each leaf.
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
                out.push(&own, Tensor::from_vec(own.len(), grad.cols(), rows.collect()));
            }
        }
    }
}

/// Sizes of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Sampled edges.
    pub edges: u64,
    /// Number of seeds: the nodes or edges of the loss.
    pub seeds: u64,
    /// Features of the batch that were here already, and those that other processes were asked for apart from it.
    pub cached: [u64; 2],
}

/// The contribution of a batch to its step.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchLoss {
    /// Sum of the (weighted) losses of the targets.
    pub sum: f64,
    /// Divisor of the sum: the number of targets, as target weights average 1.
    pub weight: f64,
}
