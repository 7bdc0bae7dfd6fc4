//! Sampling a graph that lies in parts, here or on other machines.
//!
//! A [`PartsSampler`] goes hop by hop: it asks the parts that have edges of the nodes reached so far
//! ([`Routes`]), each through a [`NeighborService`], and puts their replies together. Of an edge-cut
//! partition that is the part that owns a node, which has its whole list (DistDGLv2, section 5.4); of
//! a vertex cut all parts that hold the node, each of which draws from its share, and the smallest
//! random numbers of all win (GLISP, section IV-D: Gather-Apply). Lists of hot nodes may have a copy here
//! ([`Replica`]), from which is drawn instead. Either way the batch is the one that the whole graph would
//! have given.

mod hop;
mod local;
mod merge;
mod replica;
mod routes;
mod sampler;
mod service;

pub use hop::{HopReply, HopRequest, Rule};
pub use local::{Load, LocalPart};
pub use replica::Replica;
pub use routes::Routes;
pub use sampler::PartsSampler;
pub use service::{Answer, NeighborService};
