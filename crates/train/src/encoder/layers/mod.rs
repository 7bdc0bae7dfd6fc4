//! Layer-wise inference: embeddings by full neighborhoods, without sampling.

pub(super) mod heterogeneous;
pub(super) mod local;
pub(super) mod partitioned;

/// Nodes per range where a graph is too large for one block.
const RANGE_NODES: usize = 1 << 14;
