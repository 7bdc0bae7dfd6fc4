//! Servers of parts and their clients: answers equal those of the graph here.

mod description;
mod heterogeneous;
mod homogeneous;
mod limits;
mod targets;
