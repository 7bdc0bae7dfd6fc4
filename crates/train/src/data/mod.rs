//! Graphs, features, labels and splits for training, and the batches drawn from them.

pub(crate) mod asked;
pub mod batch;
mod edge_features;
pub mod edge_set;
pub mod graph;
pub(crate) mod hetero_graph;
pub(crate) mod identity;
pub mod node_targets;
pub(crate) mod packed;
#[cfg(feature = "serve")]
pub(crate) mod partitioned;
pub(crate) mod prepared;
pub(crate) mod read_ahead;
pub(crate) mod resident;
pub(crate) mod seeds;
pub(crate) mod shares;
pub(crate) mod target_edges;
mod timed_seeds;
pub(crate) mod times;
