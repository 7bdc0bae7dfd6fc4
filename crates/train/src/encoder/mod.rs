//! Encoders: how seeds become node embeddings.
//!
//! An encoder has a model and the *message graph* that the model receives messages over. Where a task asks
//! about edges, the edges a batch is about leave the message graph for that batch, with their reverses: else a
//! node would be told its neighbor by the very message that passes over the edge (DistDGLv2, section 5.6).

pub(crate) mod build;
pub(crate) mod embedding_only;
mod encode;
pub(crate) mod heterogeneous;
pub(crate) mod homogeneous;
mod layers;
pub(crate) mod message_graph;
mod samplers;
mod subgraphs;

pub(crate) use encode::{Encoder, Outputs, Source};
