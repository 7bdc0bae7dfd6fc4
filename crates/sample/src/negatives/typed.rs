//! `typed`: nodes that a relation has on the predicted side, for example films only for films
//! (Krompaß, Baier & Tresp, ISWC 2015).

use gnarl_common::rng::Key;
use gnarl_graph::triples::{Side, Triples};

use super::{Drawn, NegativeSampler, Positives};

/// Distinct endpoints of each relation, for heads and for tails.
#[derive(Debug, Clone, Default)]
pub struct EndsByRelation {
    sides: [Vec<Ends>; 2],
}

/// Endpoints of a relation on one side.
#[derive(Debug, Clone, Default)]
struct Ends {
    nodes: Vec<u32>,
    /// The first so many ascend, each once.
    distinct: usize,
}

/// Endpoints of a relation that are added before repeated ones are looked for.
const UNSORTED: usize = 1 << 10;

impl EndsByRelation {
    /// Adds the endpoints of `edges`. Memory is a number for each distinct endpoint, up to twice as many for a while.
    pub fn add(&mut self, edges: &Triples) {
        for side in Side::BOTH {
            let ends = &mut self.sides[side as usize];
            for (&relation, &end) in edges.relations.iter().zip(edges.ends(side)) {
                let relation = relation as usize;
                if ends.len() <= relation {
                    ends.resize_with(relation + 1, Ends::default);
                }
                ends[relation].add(end);
            }
        }
    }

    /// Nodes of each relation on each side, ascending.
    fn finish(self) -> [Vec<Vec<u32>>; 2] {
        let nodes = |mut ends: Ends| {
            ends.sort();
            ends.nodes
        };
        self.sides.map(|side| side.into_iter().map(nodes).collect())
    }
}

impl Ends {
    fn add(&mut self, node: u32) {
        self.nodes.push(node);
        if self.nodes.len() > 2 * self.distinct + UNSORTED {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.nodes.sort_unstable();
        self.nodes.dedup();
        self.distinct = self.nodes.len();
    }
}

/// Nodes drawn uniformly, with repetition, from the relation's known endpoints on that side,
/// `count` for all edges of the batch with that relation.
pub struct Typed {
    /// Nodes of each relation, for heads and for tails.
    ends: [Vec<Vec<u32>>; 2],
    count: usize,
}

impl Typed {
    /// Draws `count` of the endpoints `ends`.
    pub fn new(ends: EndsByRelation, count: usize) -> Self {
        Self { ends: ends.finish(), count }
    }
}

impl NegativeSampler for Typed {
    fn name(&self) -> &'static str {
        "typed"
    }

    fn choose(&self, batch: &Positives<'_>, side: Side, key: Key) -> Drawn {
        let ends = &self.ends[side as usize];
        let mut group_of = vec![None; ends.len()];
        let mut drawn = Drawn { count: self.count, ..Drawn::default() };
        let mut groups = 0;
        for &relation in &batch.triples.relations[batch.share.clone()] {
            let group = *group_of[relation as usize].get_or_insert_with(|| {
                let (key, nodes) = (key.with(relation.into()), &ends[relation as usize]);
                let draw = |i| nodes[key.below(i, nodes.len() as u64) as usize];
                drawn.ids.extend((0..self.count as u64).map(draw));
                groups += 1;
                groups - 1
            });
            drawn.groups.push(group);
        }
        drawn
    }
}
