//! Parts for tasks of edges: the message graph of a task is partitioned, and its target edges lie beside the parts.

mod division;
mod of_dataset;
mod of_task;
mod partition;
mod settings;
#[cfg(feature = "serve")]
mod training;

pub(crate) use division::Division;
pub(crate) use of_dataset::check_of_dataset;
pub(crate) use of_task::{check_of_task, message_form};
pub use partition::partition_for_task;
pub(crate) use settings::{Splits, TaskSettings};
#[cfg(feature = "serve")]
pub(crate) use training::training_edges;
