//! Sampling by time: nothing of the future is read, whatever is predicted, and neither workers, parts nor an interruption
//! change a loss.

mod bench;
mod edges;
mod nodes;
#[cfg(feature = "serve")]
mod parts;
