//! Passes over the edges of a dataset in bounded memory, shared by all partitioners.

pub mod adjacency;
pub mod ahead;
pub mod bitmap;
pub mod chunk;
pub mod degrees;
