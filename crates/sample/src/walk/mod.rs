//! Random walks, and neighborhoods from walks.
//!
//! Walks go from a node to one of its in-neighbors, so against the direction in which messages
//! pass. Each step chooses uniformly among the edges of the list, repeated ones included.

mod bias;
mod metapath;
mod neighbors;
mod random;

pub use metapath::MetaPathWalk;
pub use neighbors::WalkNeighbors;
pub use random::RandomWalk;
