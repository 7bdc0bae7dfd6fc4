//! The deals: which parts are in memory when, and what is trained meanwhile. Every deal is a function of its key.

mod nodes;
mod pairs;
mod spread;

pub(super) use nodes::deal as nodes;
pub(super) use pairs::deal as pairs;
pub(crate) use pairs::visits;
pub(super) use spread::{spread, trainable};

/// Steps with the same parts in memory: these, ascending.
pub(crate) type Era = Vec<usize>;
