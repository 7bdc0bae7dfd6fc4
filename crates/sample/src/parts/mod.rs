//! Sampling from a partitioned graph, on this machine or others.
//!
//! A [`PartsSampler`] goes hop by hop: it queries the parts that have edges of the nodes reached so
//! far ([`Routes`]), each through a [`NeighborService`], and merges their replies. In an edge-cut
//! partition that is the part that owns a node, which has its complete list (DistDGLv2, section
//! 5.4); in a vertex cut all parts that hold the node, each of which draws from its share, and the
//! smallest random numbers of all win (GLISP, section IV-D: Gather-Apply). Lists of hot nodes may
//! have a local [`Replica`], from which they are drawn instead. Either way the batch equals that of
//! the whole graph. A [`TemporalPartsSampler`] samples as of times; from vertex cuts by numbers of edges.

mod hop;
pub(crate) mod lists;
mod local;
pub(crate) mod merge;
mod replica;
mod routes;
mod sampler;
mod service;
mod spare;
pub(crate) mod temporal;

pub use hop::{AsOf, HopReply, HopRequest, Rule};
pub use local::{Load, LocalPart};
pub use replica::Replica;
pub use routes::Routes;
pub use sampler::PartsSampler;
pub use service::{Answer, NeighborService};
pub use temporal::TemporalPartsSampler;
