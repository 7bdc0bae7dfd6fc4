//! Link prediction: scores of edges by relation, learned from known edges and negatives.
//!
//! Without an encoder (`model.name = "none"`) nodes have embeddings of their own, as in knowledge
//! graph embedding. With one, a model computes them.

mod batches;
mod edges;
mod endpoints;
mod leakage;
mod links;
mod negatives;
mod pairs;
mod predict;
mod ranking;
mod reader;
mod relations;
mod scoring;
mod setup;

pub(crate) use edges::check_count;
pub(crate) use relations::count as count_relations;
pub(crate) use setup::open;
