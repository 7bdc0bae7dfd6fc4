//! Execution of steps: over mini-batches, over the whole graph, or over the whole graph in chunks.

mod any_step;
pub(crate) mod batch_graphs;
#[cfg(feature = "serve")]
pub(crate) mod batch_worker;
pub(crate) mod chunked;
pub(crate) mod full_graph;
pub(crate) mod mini_batch;
mod part_step;
pub(crate) mod preparation;
pub(crate) mod tensor_parallel;
mod train_step;

pub use any_step::{AnyBatch, AnySampled, AnyStep};
pub use part_step::PartStep;
pub use train_step::{BatchLoss, Counts, Exchanges, Gradients, Inputs, TrainStep};
