//! Parts for tasks of edges: the message graph of a task is partitioned, and its target edges lie beside the parts.

mod division;
mod partition;
mod settings;

pub(crate) use division::Division;
pub use partition::partition_for_task;
pub(crate) use settings::{Splits, TaskSettings};
