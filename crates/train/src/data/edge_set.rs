//! Sets of edges of a message graph.

use gnarl_graph::triples::Triples;
use hashbrown::HashSet;
use serde::{Deserialize, Serialize};

/// Edges, by edge type of the message graph and dataset ids of source and destination.
pub(crate) type EdgeSet = HashSet<(usize, u64, u64)>;

/// Indices of an edge's type in the message graph, and of its reverse's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ways {
    pub forth: usize,
    /// None if there are no reverses.
    pub back: Option<usize>,
}

impl Ways {
    /// The types of a relation, one of so many, each with an edge type of its own and one for its
    /// reverse.
    pub fn of_relation(relation: u32, relations: usize) -> Self {
        Self { forth: relation as usize, back: Some(relation as usize + relations) }
    }
}

/// Edges with relations as edges of the message graph, in both directions.
pub(crate) fn both_ways(edges: &Triples, ways: impl Fn(u32) -> Ways) -> EdgeSet {
    let mut all = EdgeSet::with_capacity(2 * edges.len());
    for i in 0..edges.len() {
        let head = edges.heads[i].into();
        let tail = edges.tails[i].into();
        let Ways { forth, back } = ways(edges.relations[i]);
        all.insert((forth, head, tail));
        all.extend(back.map(|back| (back, tail, head)));
    }
    all
}

/// Number of target edges, and of those that are in the message graph themselves or by their
/// reverse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeakageCount {
    /// Edges checked.
    pub edges: usize,
    /// Edges found, in either direction.
    pub seen: usize,
}

impl LeakageCount {
    /// Counts `edges` in the message graph `there`.
    pub(crate) fn of(edges: &Triples, there: &EdgeSet, ways: impl Fn(u32) -> Ways) -> Self {
        let visible = |&i: &usize| {
            let head = edges.heads[i].into();
            let tail = edges.tails[i].into();
            let Ways { forth, back } = ways(edges.relations[i]);
            there.contains(&(forth, head, tail))
                || back.is_some_and(|back| there.contains(&(back, tail, head)))
        };
        Self { edges: edges.len(), seen: (0..edges.len()).filter(visible).count() }
    }

    /// Adds another count.
    pub(crate) fn add(&mut self, other: Self) {
        self.edges += other.edges;
        self.seen += other.seen;
    }
}
