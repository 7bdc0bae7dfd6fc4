//! The filtered set: all known edges.

use std::collections::HashMap;
use std::ops::Range;

use super::{Side, Triples};

/// Endpoints of known edges, by the opposite endpoint and the relation.
#[derive(Debug, Default)]
pub struct FilteredSet {
    /// Heads and tails.
    sides: [Ends; 2],
}

#[derive(Debug, Default)]
struct Ends {
    /// Range of endpoints per given endpoint and relation.
    ranges: HashMap<[u32; 2], Range<usize>>,
    nodes: Vec<u32>,
}

impl FilteredSet {
    /// All edges of `sets` together.
    pub fn new(sets: &[&Triples]) -> Self {
        Self { sides: Side::BOTH.map(|side| Ends::new(sets, side)) }
    }

    /// Nodes that are the endpoint on `side` of a known edge of that relation with opposite
    /// endpoint `given`; ascending, each once.
    pub fn ends(&self, side: Side, given: u32, relation: u32) -> &[u32] {
        let Ends { ranges, nodes } = &self.sides[side as usize];
        ranges.get(&[given, relation]).map_or(&[], |range| &nodes[range.clone()])
    }
}

impl Ends {
    fn new(sets: &[&Triples], side: Side) -> Self {
        let of = |set: &&Triples| -> Vec<[u32; 3]> {
            let ends = set.ends(side.other()).iter().zip(&set.relations).zip(set.ends(side));
            ends.map(|((&given, &relation), &end)| [given, relation, end]).collect()
        };
        let mut all: Vec<[u32; 3]> = sets.iter().flat_map(of).collect();
        all.sort_unstable();
        all.dedup();
        let mut ranges = HashMap::new();
        let mut start = 0;
        for same in all.chunk_by(|a, b| a[..2] == b[..2]) {
            ranges.insert([same[0][0], same[0][1]], start..start + same.len());
            start += same.len();
        }
        Self { ranges, nodes: all.iter().map(|edge| edge[2]).collect() }
    }
}
