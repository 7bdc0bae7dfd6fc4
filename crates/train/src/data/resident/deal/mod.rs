//! The deals: which parts are in memory when, and what is trained meanwhile. Every deal is a function of its key.

mod among;
mod nodes;
mod pairs;

pub(super) use among::among;
pub(super) use nodes::deal as nodes;
pub(super) use pairs::deal as pairs;

/// Steps with the same parts in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Era {
    /// The parts in memory, ascending.
    pub parts: Vec<usize>,
    /// The cells whose examples are trained, ascending, see [`Examples`](super::Examples).
    pub cells: Vec<usize>,
}
