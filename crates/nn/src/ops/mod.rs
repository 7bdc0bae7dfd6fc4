//! Operations on a [`Tape`](crate::Tape), one file each: forward, and backward as a closure over
//! the saved forward values.
//!
//! Shapes are checked by assertion: a model that mixes them up is a bug in the model, and data
//! is checked against the model's shapes before training starts.

pub mod activation;
mod arithmetic;
pub mod attend;
mod dropout;
mod edge;
mod exchange;
pub mod gat;
mod gcn;
mod head_scores;
mod heads;
mod interleave;
mod linear;
mod links;
pub mod list_attention;
pub mod list_sums;
pub mod list_sweep;
mod loss;
mod lstm;
mod matmul;
mod norm;
pub mod pass;
mod relation_scores;
mod rows;
mod sage;
mod sddmm_dot;
mod span_linear;
pub mod spmm;
