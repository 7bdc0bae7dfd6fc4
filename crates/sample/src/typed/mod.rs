//! Graphs with several types of nodes and edges: neighbourhoods with fan-outs for each edge type.

mod block;
mod fanouts;
mod fused;
mod graph;
mod sampler;

pub use block::{Relation, TypedBatch, TypedBlock};
pub use fanouts::TypedFanouts;
pub use graph::TypedGraph;
pub use sampler::{TypedSampler, TypedScratch};
