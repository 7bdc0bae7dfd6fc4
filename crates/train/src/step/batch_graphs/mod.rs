//! The graph that each batch is drawn from: fixed ones, or parts in memory that change.

#[cfg(feature = "serve")]
mod elsewhere;
mod era;
mod fixed;
mod in_memory;
#[cfg(feature = "serve")]
mod one_era;
mod prepared;

use gnarl_common::Result;

use crate::data::batch::BatchSpec;
use crate::data::packed::Pending;
use crate::data::resident::NodesInMemory;
use crate::data::seeds::Seeds;
use crate::encoder::{Encoder, Outputs};
use crate::task::{Sharing, Task};

#[cfg(feature = "serve")]
pub(crate) use elsewhere::Elsewhere;
#[cfg(feature = "serve")]
pub(crate) use era::Era;
pub(crate) use era::{EndpointType, EraSource};
pub(crate) use fixed::Fixed;
pub(crate) use in_memory::{Eras, InMemory};
#[cfg(feature = "serve")]
pub(crate) use one_era::OneEra;
pub(crate) use prepared::Prepared;

/// No graph is here.
pub(crate) enum NotHere {}

/// The graphs of a run's batches.
pub(crate) trait BatchGraphs<E: Encoder>: Sync {
    /// The hold of a batch on its graph, from sampling until its features are gathered.
    type Held: Send;

    /// Asks for a batch of a batch worker, or one that is prepared; none where batches are made here.
    ///
    /// # Errors
    /// If nobody can be asked.
    fn ask(&self, _: &BatchSpec) -> Result<Option<Pending>> {
        Ok(None)
    }

    /// Batches to ask for ahead of those that are awaited.
    fn ahead(&self) -> usize {
        0
    }

    /// Notes that a batch of the graph is computed.
    fn reach(&self, _graph: usize) {}

    /// Takes hold of the graph of a batch.
    ///
    /// # Errors
    /// If it does not belong to this rank, or cannot be read.
    fn hold(&self, spec: &BatchSpec) -> Result<Self::Held>;

    /// Seconds that taking hold of it waited for parts to be read into memory.
    fn loading(&self, _: &Self::Held) -> f64 {
        0.0
    }

    /// Batch workers that live.
    fn batch_workers(&self) -> usize {
        0
    }

    /// Bytes of parts read into memory since it was last asked.
    fn read_bytes(&self) -> u64 {
        0
    }

    /// The encoder over a graph, and its sampler.
    fn encoder<'s>(&'s self, held: &'s Self::Held) -> (&'s E, &'s E::Sampler);

    /// The nodes in memory, where not all are.
    fn nodes<'s>(&'s self, _: &'s Self::Held) -> Option<&'s NodesInMemory> {
        None
    }

    /// Seeds in ids of the task, as local ids of the graph.
    ///
    /// # Errors
    /// If one is not in the graph.
    fn seeds(&self, _: &Self::Held, seeds: Seeds) -> Result<Seeds> {
        Ok(seeds)
    }

    /// Outputs of the graph, with nodes in ids of the task.
    fn outputs(&self, _: &Self::Held, outputs: Outputs) -> Outputs {
        outputs
    }

    /// The encoder for compute on batches of graph `graph` of the schedule.
    fn model(&self, graph: usize) -> &E;

    /// A rank's batches of an epoch, over graph `graph` where graphs train alone.
    fn schedule<T: Task>(
        &self,
        task: &T,
        graph: usize,
        epoch: usize,
        sharing: Sharing,
    ) -> Vec<BatchSpec>;
}
