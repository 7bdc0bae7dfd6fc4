//! `typed`: nodes that a relation has on the predicted side, for example films only for films
//! (Krompaß, Baier & Tresp, ISWC 2015).

use gnarl_common::rng::Key;
use gnarl_graph::triples::{Side, Triples};

use super::{Drawn, NegativeSampler, Positives};

/// Nodes drawn uniformly, with repetition, from the relation's known endpoints on that side,
/// `count` for all edges of the batch with that relation.
pub struct Typed {
    /// Nodes of each relation, for heads and for tails.
    ends: [Vec<Vec<u32>>; 2],
    count: usize,
}

impl Typed {
    /// Draws `count` of the endpoints that relations have in `edges`.
    pub fn new(edges: &Triples, count: usize) -> Self {
        let relations = edges.relations.iter().max().map_or(0, |&last| last as usize + 1);
        let of = |side: Side| {
            let mut nodes = vec![Vec::new(); relations];
            for (&relation, &end) in edges.relations.iter().zip(edges.ends(side)) {
                nodes[relation as usize].push(end);
            }
            for nodes in &mut nodes {
                nodes.sort_unstable();
                nodes.dedup();
            }
            nodes
        };
        Self { ends: Side::BOTH.map(of), count }
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
