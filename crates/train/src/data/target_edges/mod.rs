//! Target edges of tasks: those that are predicted, in memory or in parts.

#[cfg(feature = "serve")]
mod features;
mod in_memory;
#[cfg(feature = "serve")]
mod in_parts;
mod known;
#[cfg(feature = "serve")]
mod known_in_parts;
mod manifest;
mod read;
mod source;
#[cfg(feature = "serve")]
mod splits;

#[cfg(feature = "serve")]
pub(crate) use features::FeaturesInMemory;
pub(crate) use in_memory::EdgesInMemory;
#[cfg(feature = "serve")]
pub(crate) use in_parts::EdgesInParts;
pub(crate) use known::{KnownEdges, KnownInMemory, Query};
#[cfg(feature = "serve")]
pub(crate) use known_in_parts::KnownInParts;
pub(crate) use manifest::of_partition;
pub(crate) use read::{ReadEdge, TakeEdge};
pub(crate) use source::{TargetBatch, TargetEdges};
#[cfg(feature = "serve")]
pub(crate) use splits::{Gathered, gather};
