//! Ranks among drawn candidates.

use std::ops::Range;

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_graph::triples::{FilteredSet, Side, Triples};
use gnarl_nn::decoders::Rank;

use super::links::{LinkPrediction, queries_of};
use super::paired::Paired;

/// Ranks of the heads and of the tails of some edges.
pub(super) type Ranked = Vec<[Rank; 2]>;

/// Triples scored together.
const TRIPLES: usize = 1 << 15;
/// Draws for a candidate, most of which have no edge.
const DRAWS: u64 = 20;

/// Ranks of the heads and of the tails of the edges of split number `split`, 0 for validation, each among
/// `evaluate.candidates` nodes that form no known edge with the given endpoint, and are there at the time of the edge if
/// there are times. `score` gives the score of each of some triples. The candidates are the same in every evaluation.
///
/// # Errors
/// If a part does not tell of known edges; those of `score`.
pub(super) fn ranks(
    links: &LinkPrediction,
    (edges, split): (&Triples, usize),
    score: &mut dyn FnMut(&Paired) -> Result<Vec<f32>>,
) -> Result<Ranked> {
    let candidates = links.config.evaluate.candidates;
    let together = (TRIPLES / (1 + 2 * candidates)).max(1);
    let mut ranks = Vec::with_capacity(edges.len());
    for start in (0..edges.len()).step_by(together) {
        let places = start..edges.len().min(start + together);
        let all: Vec<u32> = places.clone().map(|place| place as u32).collect();
        let own = edges.at(&all);
        let queries: Vec<_> = Side::BOTH.iter().flat_map(|&side| queries_of(&own, side)).collect();
        let known = links.known.of(&queries)?;
        let draw = Draw { links, known: &known, split };
        let (asked, ends) = draw.candidates(&own, places);
        let scores = score(&asked)?;
        ranks.extend(ends.iter().enumerate().map(|(edge, ends)| {
            let right = scores[edge];
            ends.clone().map(|range| rank(right, &scores[range]))
        }));
    }
    Ok(ranks)
}

/// Drawing of candidates for edges of a split.
struct Draw<'a> {
    links: &'a LinkPrediction,
    known: &'a FilteredSet,
    split: usize,
}

impl Draw<'_> {
    /// The edges of `own`, which are at `places` of the split, and behind them those with drawn heads and with drawn tails;
    /// and the ranges of the latter for each edge.
    fn candidates(&self, own: &Triples, places: Range<usize>) -> (Paired, Vec<[Range<usize>; 2]>) {
        let mut asked = Paired { all: own.clone(), of: Vec::new() };
        let mut ends = Vec::with_capacity(own.len());
        for (edge, place) in places.enumerate() {
            ends.push(Side::BOTH.map(|side| {
                let first = asked.all.len();
                for end in self.drawn(own, (edge, place), side) {
                    let (head, tail) = match side {
                        Side::Head => (end, own.tails[edge]),
                        Side::Tail => (own.heads[edge], end),
                    };
                    asked.all.push(head, own.relations[edge], tail);
                    asked.of.push(edge as u32);
                }
                first..asked.all.len()
            }));
        }
        (asked, ends)
    }

    /// Candidates for an endpoint.
    fn drawn(&self, own: &Triples, (edge, place): (usize, usize), side: Side) -> Vec<u32> {
        let (given, relation) = (own.ends(side.other())[edge], own.relations[edge]);
        let known = self.known.ends(side, given, relation);
        let Range { start, end } = self.links.edges.endpoints.range(side);
        let key = Key::new(0x7a4).with(self.split as u64).with(place as u64).with(side as u64);
        let free = |node: u32| {
            let ends = match side {
                Side::Head => [node, given],
                Side::Tail => [given, node],
            };
            known.binary_search(&node).is_err()
                && self.links.edges.are_there(self.split, place, ends)
        };
        let candidate = |number: u64| {
            let draw =
                |attempt| start + key.below(number * DRAWS + attempt, (end - start).into()) as u32;
            (0..DRAWS).map(draw).find(|&node| free(node))
        };
        (0..self.links.config.evaluate.candidates as u64).filter_map(candidate).collect()
    }
}

/// The rank of a score among others: the mean of the ranks of its equals.
fn rank(right: f32, others: &[f32]) -> Rank {
    let above = others.iter().filter(|&&other| other > right).count() as u64;
    let equal = others.iter().filter(|&&other| other == right).count() as u64;
    let doubled = 2 * (1 + above) + equal;
    Rank { filtered: doubled, raw: doubled }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_share_their_ranks() {
        let doubled = |right: f32| rank(right, &[0.5, 0.25, 0.25, 1.0]).filtered;
        assert_eq!([doubled(2.0), doubled(0.5), doubled(0.25), doubled(0.0)], [2, 5, 8, 10]);
    }
}
