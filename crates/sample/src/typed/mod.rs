//! Heterogeneous graphs: neighborhoods with fan-outs per edge type.

mod block;
mod fanouts;
mod fused;
mod graph;
mod sampler;

pub use block::{Relation, TypedBatch, TypedBlock};
pub use fanouts::TypedFanouts;
pub use graph::TypedGraph;
pub use sampler::{TypedSampler, TypedScratch};
