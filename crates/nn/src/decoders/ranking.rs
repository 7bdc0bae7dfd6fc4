//! Ranks of true endpoints among all nodes.

use std::ops::Range;

use rayon::prelude::*;

use gnarl_graph::triples::{FilteredSet, Side, Triples};

use super::Decoder;
use super::similarity::Pair;
use crate::kernel::multiversion;
use crate::metrics::Ranks;
use crate::{Params, Tensor};

/// Most queries scored together: enough for products to run from cache.
const QUERIES: usize = 64;

/// Twice the rank of a true endpoint, see [`Ranks::doubled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Rank {
    /// Filtered: among all nodes but those that complete another known edge.
    pub filtered: u64,
    /// Raw: among all nodes.
    pub raw: u64,
}

/// Ranks endpoints against all nodes.
pub struct Ranker<'a> {
    decoder: &'a dyn Decoder,
    params: &'a Params,
    /// Node embeddings.
    rows: &'a Tensor,
    known: &'a FilteredSet,
    /// Memory limit of the scores, in bytes.
    memory: usize,
    /// Node ranges that endpoints of each side are ranked among.
    among: [Range<u32>; 2],
}

/// The edges of one query, and a representative of them.
struct Query {
    edges: Vec<u32>,
    given: u32,
    relation: u32,
}

impl<'a> Ranker<'a> {
    /// A ranker over nodes with these embeddings. Scores take at most `memory` bytes, or one row of
    /// them per thread if that is more.
    pub fn new(
        decoder: &'a dyn Decoder,
        params: &'a Params,
        rows: &'a Tensor,
        known: &'a FilteredSet,
        memory: usize,
    ) -> Self {
        let all = 0..rows.rows() as u32;
        Self { decoder, params, rows, known, memory, among: [all.clone(), all] }
    }

    /// Restricts heads and tails to these node ranges, which contain all true endpoints.
    #[must_use]
    pub fn among(mut self, heads: Range<u32>, tails: Range<u32>) -> Self {
        self.among = [heads, tails];
        self
    }

    /// The node range that endpoints of `side` are ranked among.
    fn range(&self, side: Side) -> Range<u32> {
        match side {
            Side::Head => self.among[0].clone(),
            Side::Tail => self.among[1].clone(),
        }
    }

    /// The rank of the endpoint at `side` of each of `edges`, on the rayon pool this is called
    /// from. Edges with equal queries are scored once.
    pub fn rank(&self, side: Side, edges: &Triples) -> Vec<Rank> {
        let queries = queries(side, edges);
        let (range, width) = (self.range(side), self.rows.cols());
        let nodes = range.len();
        let candidates = if nodes == self.rows.rows() {
            self.decoder.candidate(self.params, side, self.rows)
        } else {
            let mut some = Tensor::scratch(nodes, width);
            let values = range.start as usize * width..range.end as usize * width;
            some.data_mut().copy_from_slice(&self.rows.data()[values]);
            self.decoder.candidate(self.params, side, &some)
        };
        let each = self.memory / rayon::current_num_threads().max(1) / (4 * nodes.max(1));
        let size = each.clamp(1, QUERIES);
        let found: Vec<Vec<(u32, Rank)>> = queries
            .par_chunks(size)
            .map(|queries| self.chunk(side, edges, queries, &candidates))
            .collect();
        let mut ranks = vec![Rank { filtered: 0, raw: 0 }; edges.len()];
        for (edge, rank) in found.into_iter().flatten() {
            ranks[edge as usize] = rank;
        }
        ranks
    }

    fn chunk(
        &self,
        side: Side,
        edges: &Triples,
        queries: &[Query],
        candidates: &Tensor,
    ) -> Vec<(u32, Rank)> {
        let (range, width) = (self.range(side), self.rows.cols());
        let mut given = Tensor::scratch(queries.len(), width);
        for (out, query) in given.data_mut().chunks_exact_mut(width).zip(queries) {
            out.copy_from_slice(self.rows.row(query.given as usize));
        }
        let relations: Vec<u32> = queries.iter().map(|query| query.relation).collect();
        let asked = self.decoder.query(self.params, side, &given, &relations);
        let mut scores = Tensor::scratch(queries.len(), range.len());
        let pair =
            Pair { queries: asked.data(), candidates: candidates.data(), width: candidates.cols() };
        self.decoder.similarity(self.params).scores(scores.data_mut(), pair);
        let ends = edges.ends(side);
        let mut found = Vec::new();
        for (i, query) in queries.iter().enumerate() {
            let known = self.known.ends(side, query.given, query.relation);
            for &edge in &query.edges {
                let right = ends[edge as usize] - range.start;
                found.push((edge, rank((scores.row(i), range.start), right, known)));
            }
        }
        found
    }
}

/// The distinct queries of `edges` for their endpoints of `side`.
fn queries(side: Side, edges: &Triples) -> Vec<Query> {
    let given = edges.ends(side.other());
    let key = |&edge: &u32| (given[edge as usize], edges.relations[edge as usize]);
    let mut order: Vec<u32> = (0..edges.len() as u32).collect();
    order.sort_by_key(key);
    order
        .chunk_by(|a, b| key(a) == key(b))
        .map(|same| {
            let (given, relation) = key(&same[0]);
            Query { edges: same.to_vec(), given, relation }
        })
        .collect()
}

/// The rank of node `right` among the scores of all nodes, where `known` is numbered from `first`
/// on. A NaN score ranks above every other.
fn rank((scores, first): (&[f32], u32), right: u32, known: &[u32]) -> Rank {
    let own = scores[right as usize];
    let mut counts = [0; 2];
    count(scores, own, &mut counts);
    // The node itself counts as equal, or as above if its score is no number.
    let [mut above, mut equal] = less(counts, own, own);
    let raw = Ranks::doubled(above.into(), equal.into());
    for node in known.iter().map(|node| node - first).filter(|&node| node != right) {
        [above, equal] = less([above, equal], scores[node as usize], own);
    }
    Rank { filtered: Ranks::doubled(above.into(), equal.into()), raw }
}

/// The counts above and equal with one entry of that score removed.
fn less([above, equal]: [u32; 2], score: f32, own: f32) -> [u32; 2] {
    [above - u32::from(beats(score, own)), equal - u32::from(score == own)]
}

/// Returns whether a score stands above `own`, as it does if either is NaN.
#[inline(always)]
fn beats(score: f32, own: f32) -> bool {
    score > own || score.is_nan() || own.is_nan()
}

multiversion! {
    /// Adds the numbers of scores above `own` and equal to it to `counts`.
    fn count(scores: &[f32], own: f32, counts: &mut [u32; 2]) {
        let (mut beaten, mut equal) = (0u32, 0u32);
        for &score in scores {
            beaten += u32::from(score <= own);
            equal += u32::from(score == own);
        }
        counts[0] += scores.len() as u32 - beaten;
        counts[1] += equal;
    }
}

#[cfg(test)]
mod tests {
    use gnarl_common::rng::Key;

    use super::super::{DecoderConfig, build, names};
    use super::*;

    #[test]
    fn ties_share_their_places_and_known_edges_are_left_out() {
        let scores = [0.5, 0.9, 0.5, 0.1, 0.7, f32::NAN];
        let found = rank((&scores, 0), 0, &[0, 1, 3]);
        assert_eq!(found, rank((&scores, 7), 0, &[7, 8, 10]));
        assert_eq!(found, Rank { raw: 2 + 2 * 3 + 1, filtered: 2 + 2 * 2 + 1 });
        let last = rank((&scores, 0), 5, &[]);
        assert_eq!(last.raw, Ranks::doubled(5, 0), "what is no number does not stand above others");
    }

    /// Ranks by the definition, one score after the other.
    #[test]
    fn ranks_are_those_of_the_definition() {
        let (nodes, dim) = (30u64, 6);
        let key = Key::new(4);
        let mut edges = Triples::default();
        let mut others = Triples::default();
        for i in 0..200 {
            let node = |word: u64| key.with(word).below(i, nodes) as u32;
            let to = if i < 80 { &mut edges } else { &mut others };
            to.push(node(1), key.with(2).below(i, 2) as u32, node(3));
        }
        let known = FilteredSet::new(&[&edges, &others]);
        for name in names() {
            let config = DecoderConfig { name: name.to_string(), hidden: 5, ..Default::default() };
            let (decoder, params) = build(&config, dim, 2, key).unwrap();
            let width = decoder.width();
            let values = (0..nodes * width as u64).map(|i| key.with(5).normal(i) as f32).collect();
            let rows = Tensor::from_vec(nodes as usize, width, values);
            for memory in [0, 1 << 20] {
                let ranker = Ranker::new(decoder.as_ref(), &params, &rows, &known, memory);
                for side in Side::BOTH {
                    let ranks = ranker.rank(side, &edges);
                    let candidates = decoder.candidate(&params, side, &rows);
                    for (i, found) in ranks.iter().enumerate() {
                        let given = edges.ends(side.other())[i];
                        let relation = edges.relations[i];
                        let row = rows.row(given as usize).to_vec();
                        let row = Tensor::from_vec(1, width, row);
                        let query = decoder.query(&params, side, &row, &[relation]);
                        let pair = Pair {
                            queries: query.data(),
                            candidates: candidates.data(),
                            width: candidates.cols(),
                        };
                        let mut scores = vec![0.0; nodes as usize];
                        decoder.similarity(&params).scores(&mut scores, pair);
                        let (own, right) =
                            (scores[edges.ends(side)[i] as usize], edges.ends(side)[i]);
                        let ends = known.ends(side, given, relation);
                        let place = |keep: &dyn Fn(u32) -> bool| {
                            let nodes = (0..nodes as u32).filter(|&v| v != right && keep(v));
                            let (mut above, mut equal) = (0, 0);
                            for score in nodes.map(|v| scores[v as usize]) {
                                above += u64::from(score > own);
                                equal += u64::from(score == own);
                            }
                            Ranks::doubled(above, equal)
                        };
                        assert_eq!(found.raw, place(&|_| true), "{name} {side:?}");
                        assert_eq!(
                            found.filtered,
                            place(&|v| !ends.contains(&v)),
                            "{name} {side:?}"
                        );
                    }
                }
            }
        }
    }
}
