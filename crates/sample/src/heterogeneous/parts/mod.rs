//! Neighborhoods in a partitioned heterogeneous graph, from parts on this machine or others.

mod lists;
mod sampler;
mod temporal;

pub use lists::local_parts;
pub use sampler::{EdgeServices, HeteroPartsSampler};
pub use temporal::HeteroTemporalPartsSampler;
