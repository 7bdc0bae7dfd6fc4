//! Target edges as they are handed out.

use std::collections::HashSet;

use gnarl_graph::Labels;
use gnarl_graph::triples::Triples;

/// Most edges of a piece of a split.
pub(crate) const STRETCH: u64 = 1 << 14;

/// Target edges of a part, a row per edge.
#[derive(Debug, Clone, Default)]
pub struct FoundTargets {
    /// Position of each edge among the requested places, or, of edges of a whole split, its place; ascending.
    pub positions: Vec<u32>,
    /// The edges.
    pub edges: Triples,
    /// Labels, if edges have any.
    pub labels: Option<Labels>,
    /// Features, `edges × width` values, if edges have any.
    pub features: Option<Vec<f32>>,
    /// Times, if edges have any.
    pub times: Option<Vec<i64>>,
}

/// The keys without repetitions, in their order.
pub(crate) fn distinct(keys: &[[u32; 2]]) -> impl Iterator<Item = [u32; 2]> {
    let mut seen = HashSet::with_capacity(keys.len());
    keys.iter().copied().filter(move |key| seen.insert(*key))
}
