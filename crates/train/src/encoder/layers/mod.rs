//! Layer-wise inference: models over graphs as [`gnarl_infer::Layers`], by full neighborhoods.

mod blocks;
mod features;
mod heterogeneous;
mod homogeneous;
pub(super) mod partitioned;
mod propagation;
mod stages;

pub(super) use heterogeneous::HeteroLayers;
pub(super) use homogeneous::infer;

/// Nodes per range where all ranks compute the layers of a partitioned graph together.
const RANGE_NODES: usize = 1 << 14;
