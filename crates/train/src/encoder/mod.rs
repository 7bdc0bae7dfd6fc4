//! Encoders compute node embeddings from seeds.
//!
//! An encoder has a model and the *message graph* that the model receives messages over. In edge
//! tasks, the target edges of a batch are removed from the message graph for that batch, with their
//! reverses: else the very message that passes over an edge would leak it (DistDGLv2, section 5.6).

mod budget;
pub(crate) mod build;
pub(crate) mod course;
pub(crate) mod embedding_only;
mod encode;
pub(crate) mod heterogeneous;
pub(crate) mod homogeneous;
mod layers;
pub(crate) mod message_graph;
mod samplers;
mod subgraphs;

pub(crate) use budget::budget as budget_of;
pub(crate) use course::Course;
pub(crate) use encode::{Encoder, Outputs, Source};
pub use encode::{Keep, Output};
