//! Tasks: targets, training examples and evaluation. One folder or file per task.

mod buckets;
pub(crate) mod divide;
pub(crate) mod edge;
mod edge_scores;
mod ends;
pub(crate) mod link;
pub(crate) mod node;
mod numbers;
pub mod objective;
mod predict;
mod schedule;

pub use divide::partition_for_task;
pub use edge_scores::EdgeBatch;
pub(crate) use edge_scores::{EdgeScores, Ranking};
pub(crate) use ends::embeddings_before;
pub(crate) use predict::{DrawnBatch, Encoders, Sizes, Task};
pub(crate) use schedule::Sharing;
