//! Steps and batches behind trait objects: pipelines and training loops are compiled once, in place of once for every
//! task, encoder and way to execute a step.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_engine::Communicator;
use gnarl_nn::{Mode, Params, Tensor};
use gnarl_sample::Scratch;

use super::train_step::{BatchLoss, Counts, Exchanges, Gradients, Inputs, TrainStep};
use crate::data::batch::BatchSpec;
use crate::evaluation::Evaluation;
use crate::session::Threads;
use crate::state::TrainState;

/// A [`TrainStep`] of any kind; every one is.
pub trait AnyStep: Sync {
    /// The batch schedule of an epoch for a rank, as of [`TrainStep::epoch`].
    fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<BatchSpec>;

    /// Samples a batch.
    ///
    /// # Errors
    /// Those of [`TrainStep::sample`].
    fn sample<'s>(
        &'s self,
        spec: &BatchSpec,
        scratch: &mut Scratch,
    ) -> Result<Box<dyn AnySampled<'s> + 's>>;

    /// Batches to sample ahead, as of [`TrainStep::ahead`].
    fn ahead(&self) -> usize;

    /// Scores of the state, as of [`TrainStep::evaluate`].
    ///
    /// # Errors
    /// Those of [`TrainStep::evaluate`].
    fn evaluate(
        &self,
        state: &TrainState,
        comm: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation>;

    /// Remote features that were cached, and that were not, so far.
    fn cached(&self) -> [u64; 2];

    /// Batch workers that live, as of [`TrainStep::batch_workers`].
    fn batch_workers(&self) -> usize;

    /// Bytes of parts read into memory since it was last asked, as of [`TrainStep::read_bytes`].
    fn read_bytes(&self) -> u64;

    /// Counters of this rank's exchanges so far; `None` if there are none.
    fn exchanges(&self) -> Option<Exchanges>;
}

/// A sampled batch of a step that lives for `'s`.
pub trait AnySampled<'s>: Send {
    /// Seconds that sampling waited for parts to be read into memory.
    fn loading(&self) -> f64;

    /// True if it is received from others, as of [`TrainStep::is_received`].
    fn is_received(&self) -> bool;

    /// Gathers features, local and remote.
    ///
    /// # Errors
    /// Those of [`TrainStep::fetch`].
    fn fetch(self: Box<Self>, spec: &BatchSpec) -> Result<Arc<dyn AnyBatch + 's>>;
}

/// A batch ready for compute, with its step.
pub trait AnyBatch: Send + Sync {
    /// Builds the transposes for the backward pass.
    fn prepare(&self);

    /// Sizes of the batch.
    fn counts(&self) -> Counts;

    /// Ids of the embeddings the batch reads, one list per table, as of [`TrainStep::embedding_ids`].
    fn embedding_ids(&self) -> Vec<&[u64]>;

    /// Adds the gradient of the summed loss to `gradients`, as [`TrainStep::gradient`] does; `inputs` are the graph and the
    /// embeddings of [`Inputs`].
    ///
    /// # Errors
    /// Those of [`TrainStep::gradient`].
    fn gradient(
        &self,
        params: &Params,
        inputs: (usize, Vec<Tensor>),
        mode: Mode,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss>;
}

impl<S: TrainStep> AnyStep for S {
    fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<BatchSpec> {
        TrainStep::epoch(self, epoch, rank, size)
    }

    fn sample<'s>(
        &'s self,
        spec: &BatchSpec,
        scratch: &mut Scratch,
    ) -> Result<Box<dyn AnySampled<'s> + 's>> {
        let made = TrainStep::sample(self, spec, scratch)?;
        Ok(Box::new(Sampled { step: self, made }))
    }

    fn ahead(&self) -> usize {
        TrainStep::ahead(self)
    }

    fn evaluate(
        &self,
        state: &TrainState,
        comm: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        TrainStep::evaluate(self, state, comm, threads)
    }

    fn cached(&self) -> [u64; 2] {
        TrainStep::cached(self)
    }

    fn batch_workers(&self) -> usize {
        TrainStep::batch_workers(self)
    }

    fn read_bytes(&self) -> u64 {
        TrainStep::read_bytes(self)
    }

    fn exchanges(&self) -> Option<Exchanges> {
        TrainStep::exchanges(self)
    }
}

struct Sampled<'s, S: TrainStep> {
    step: &'s S,
    made: S::Sampled,
}

impl<'s, S: TrainStep> AnySampled<'s> for Sampled<'s, S> {
    fn loading(&self) -> f64 {
        self.step.loading(&self.made)
    }

    fn is_received(&self) -> bool {
        self.step.is_received(&self.made)
    }

    fn fetch(self: Box<Self>, spec: &BatchSpec) -> Result<Arc<dyn AnyBatch + 's>> {
        let Self { step, made } = *self;
        Ok(Arc::new(Batch { step, made: step.fetch(spec, made)? }))
    }
}

struct Batch<'s, S: TrainStep> {
    step: &'s S,
    made: S::Batch,
}

impl<S: TrainStep> AnyBatch for Batch<'_, S> {
    fn prepare(&self) {
        self.step.prepare(&self.made);
    }

    fn counts(&self) -> Counts {
        self.step.counts(&self.made)
    }

    fn embedding_ids(&self) -> Vec<&[u64]> {
        self.step.embedding_ids(&self.made)
    }

    fn gradient(
        &self,
        params: &Params,
        (graph, embeddings): (usize, Vec<Tensor>),
        mode: Mode,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let inputs = Inputs { batch: &self.made, graph, embeddings };
        self.step.gradient(params, inputs, mode, gradients)
    }
}
