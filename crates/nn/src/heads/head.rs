//! The trait of heads, and their input.

use crate::{Tape, Var};

/// Inputs of a head for a batch of edges, one row per edge.
#[derive(Debug, Clone, Copy)]
pub struct EdgeRows {
    /// Embeddings of the heads.
    pub heads: Var,
    /// Embeddings of the tails.
    pub tails: Var,
    /// Edge features.
    pub features: Option<Var>,
}

/// Input and output widths of a head.
#[derive(Debug, Clone, Copy)]
pub struct HeadSizes {
    /// Width of an endpoint's embedding.
    pub width: usize,
    /// Width of the edge features; 0 without.
    pub features: usize,
    /// Number of classes, or 1 for regression.
    pub outputs: usize,
}

/// Maps embeddings of endpoints to logits. Parameters live in [`Params`](crate::Params).
pub trait Head: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// One row of logits per edge.
    ///
    /// # Panics
    /// If embeddings are not as wide as the head expects.
    fn forward(&self, tape: &mut Tape<'_>, edges: EdgeRows) -> Var;
}
