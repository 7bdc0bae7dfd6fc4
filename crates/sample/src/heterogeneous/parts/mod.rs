//! Neighborhoods in a partitioned heterogeneous graph, from parts on this machine or others.

mod lists;
mod sampler;

pub use lists::local_parts;
pub use sampler::{EdgeServices, HeteroPartsSampler};
