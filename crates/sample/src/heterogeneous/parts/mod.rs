//! Neighborhoods in a partitioned heterogeneous graph, from parts on this machine or others.

mod divided;
mod lists;
mod sampler;
mod temporal;

pub use divided::EdgeServices;
pub(crate) use divided::{Begun, Divided};
pub use lists::local_parts;
pub use sampler::HeteroPartsSampler;
pub use temporal::HeteroTemporalPartsSampler;
