//! Graphs with several types of nodes and edges: neighbourhoods with fan-outs for each edge type.

mod block;
mod fanouts;
mod fused;
mod graph;
mod sampler;
mod schema;

pub use block::{Relation, TypedBatch, TypedBlock};
pub use fanouts::TypedFanouts;
pub use fused::{FusedBatch, FusedBlock, Segment};
pub use graph::TypedGraph;
pub use sampler::{TypedSampler, TypedScratch};
pub use schema::Schema;
