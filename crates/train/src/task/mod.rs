//! Tasks: targets, training examples and evaluation. One folder or file per task.

pub(crate) mod edge;
pub(crate) mod link;
pub(crate) mod node;
mod numbers;
pub mod objective;
mod predict;
mod schedule;

pub(crate) use predict::{Encoders, Sizes, Task};
pub(crate) use schedule::Sharing;
