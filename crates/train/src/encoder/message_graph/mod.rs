//! Message graphs of edge tasks: over edges whatever their relation, by relation, or by edge type; in memory, or as a
//! dataset on disk.

mod distinct;
mod form;
mod in_memory;
mod on_disk;
mod outlet;

pub(crate) use form::MessageForm;
pub(crate) use in_memory::MessageEdges;
pub(super) use in_memory::{by_relation, by_type, regardless};
pub(crate) use on_disk::{OnDisk, Passing};
