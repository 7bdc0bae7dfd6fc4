//! The trait of heads, and their input.

use crate::{Tape, Var};

/// What is known of some edges, a row for each.
#[derive(Debug, Clone, Copy)]
pub struct EdgeRows {
    /// Rows of their heads.
    pub heads: Var,
    /// Rows of their tails.
    pub tails: Var,
    /// Features of their own.
    pub features: Option<Var>,
}

/// Widths of what a head takes and gives.
#[derive(Debug, Clone, Copy)]
pub struct HeadSizes {
    /// Of the row of an end.
    pub width: usize,
    /// Of the features of an edge; 0 without.
    pub features: usize,
    /// Classes, or 1 for a number.
    pub outputs: usize,
}

/// Turns rows of ends into logits. Parameters live in [`Params`](crate::Params).
pub trait Head: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// A row of logits for each edge.
    ///
    /// # Panics
    /// If rows are not as wide as the head was made for.
    fn forward(&self, tape: &mut Tape<'_>, edges: EdgeRows) -> Var;
}
