//! Embeddings by full neighbors, layer by layer, without sampling.

pub(super) mod heterogeneous;
pub(super) mod local;
pub(super) mod partitioned;

/// Nodes that a layer runs over at a time where a graph is too large for one block.
const RANGE_NODES: usize = 1 << 14;
