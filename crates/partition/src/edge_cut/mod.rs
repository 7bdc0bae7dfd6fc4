//! Vertex partitioners, one file or folder per algorithm: each node gets one part, edges are cut.

pub mod fennel;
pub mod grem;
pub mod knot;
pub mod ldg;
pub mod metis;
pub mod partitioner;
pub mod random;
pub mod range;
pub mod registry;
pub mod spring;
mod stream;
pub mod two_level;
