//! Link prediction: scores of edges by relation, learned from known edges and negatives.
//!
//! Without an encoder (`model.name = "none"`) nodes have embeddings of their own, as in knowledge
//! graph embedding. With one, a model computes them.

mod among;
mod batches;
mod candidates;
mod divide;
mod edges;
mod endpoints;
mod in_time;
mod latest;
mod leakage;
mod links;
mod model;
mod negatives;
mod packed;
mod paired;
mod pairs;
#[cfg(feature = "serve")]
mod parts;
mod predict;
mod ranking;
mod reader;
mod relations;
mod scoring;
mod setup;

pub(crate) use divide::{divide, message_form};
pub(crate) use edges::check_count;
#[cfg(feature = "serve")]
pub(crate) use parts::open_parts;
pub(crate) use relations::count as count_relations;
pub(crate) use setup::open;
