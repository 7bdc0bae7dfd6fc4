//! Batches on their way between processes: columns by name, and what encoders and tasks put into them.

mod arrow;
pub(crate) mod blocks;
mod columns;
pub(crate) mod heterogeneous;
pub(crate) mod rows;
pub(crate) mod targets;

pub(crate) use arrow::{columns, record_batch};
pub(crate) use columns::Columns;
pub(crate) use rows::take_cached;

/// Waits for a batch that was asked for.
pub(crate) type Pending = Box<dyn FnOnce() -> gnarl_common::Result<Columns> + Send>;
