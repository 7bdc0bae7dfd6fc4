//! Neighborhoods in which each node is expanded once, in the hop that first reached it: one edge list for all layers of
//! a model, as PyTorch Geometric's loaders give it.

mod batch;
mod induced;
mod parts;
mod recorded;
mod replaced;
mod sampler;
mod trees;

pub use batch::{FrontierBatch, FrontierEdges};
pub use parts::FrontierPartsSampler;
pub use sampler::FrontierSampler;
pub use trees::Roots;
