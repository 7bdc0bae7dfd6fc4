//! Execution of steps: over mini-batches, over the whole graph, or over the whole graph in chunks.

pub(crate) mod chunked;
pub(crate) mod full_graph;
pub(crate) mod mini_batch;
pub(crate) mod tensor_parallel;
mod train_step;

pub use train_step::{BatchLoss, Counts, Exchanges, Gradients, Inputs, PartStep, TrainStep};
