//! Target edges of tasks: those that are predicted, in memory or in parts.

mod in_memory;
mod known;
mod read;
mod source;

pub(crate) use in_memory::EdgesInMemory;
pub(crate) use known::{KnownEdges, KnownInMemory, Query};
pub(crate) use read::{ReadEdge, TakeEdge};
pub(crate) use source::{TargetBatch, TargetEdges};
