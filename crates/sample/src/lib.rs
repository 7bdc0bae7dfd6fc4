//! Neighbour and subgraph samplers that turn seeds into blocks.

mod block;

pub use block::{Block, MiniBatch, NodeInfo, Transpose};
