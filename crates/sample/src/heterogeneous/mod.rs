//! Heterogeneous graphs: neighborhoods with fan-outs per edge type.

mod block;
mod fanouts;
mod fused;
mod graph;
mod parts;
mod sampler;
mod temporal;

pub use block::{HeteroBatch, HeteroBlock, Relation};
pub use fanouts::HeteroFanouts;
pub use graph::HeteroSampleGraph;
pub use parts::{EdgeServices, HeteroPartsSampler, HeteroTemporalPartsSampler, local_parts};
pub use sampler::{HeteroSampler, HeteroScratch};
pub use temporal::{HeteroTemporalBatch, HeteroTemporalSampler, SeedsAt};

pub(crate) use parts::{Begun, Divided};
pub(crate) use sampler::{drawable, targets};
