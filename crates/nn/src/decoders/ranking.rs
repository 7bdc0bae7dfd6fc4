//! Ranks of true endpoints among all nodes, which come in blocks.

use std::ops::Range;

use rayon::prelude::*;

use gnarl_common::Result;
use gnarl_graph::triples::{FilteredSet, Side, Triples};

use super::Decoder;
use super::similarity::Pair;
use crate::kernel::multiversion;
use crate::metrics::Ranks;
use crate::{Params, Tensor};

/// Queries scored together: enough for products to run from cache.
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

/// Numbers of candidates with scores above that of the true endpoint, and equal to it, the true endpoint left out. Those of
/// several blocks of candidates are added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Beaten {
    /// Of nodes that complete no other known edge.
    pub filtered: [u64; 2],
    /// Of all nodes.
    pub raw: [u64; 2],
}

impl Beaten {
    /// Adds the numbers of other candidates.
    pub fn add(&mut self, other: Self) {
        for side in 0..2 {
            self.filtered[side] += other.filtered[side];
            self.raw[side] += other.raw[side];
        }
    }

    /// The rank among all candidates that were counted.
    pub fn rank(self) -> Rank {
        let doubled = |[above, equal]: [u64; 2]| Ranks::doubled(above, equal);
        Rank { filtered: doubled(self.filtered), raw: doubled(self.raw) }
    }
}

/// The endpoints on one side of some edges, to be ranked against nodes that come block after block, perhaps on several
/// machines. Edges with equal queries are scored once.
pub struct Ranking<'a> {
    decoder: &'a dyn Decoder,
    params: &'a Params,
    known: &'a FilteredSet,
    side: Side,
    edges: &'a Triples,
    queries: Vec<Query>,
    /// Vectors of the queries, [`QUERIES`] in each.
    asked: Vec<Tensor>,
    /// The score of the true endpoint of each edge.
    own: Vec<f32>,
}

/// The edges of one query, and a representative of them.
struct Query {
    edges: Vec<u32>,
    given: u32,
    relation: u32,
}

impl<'a> Ranking<'a> {
    /// The endpoints of `side` of `edges`; `embeddings` gives those of some nodes, and is called twice.
    ///
    /// # Errors
    /// Those of `embeddings`.
    pub fn new(
        (decoder, params): (&'a dyn Decoder, &'a Params),
        known: &'a FilteredSet,
        (side, edges): (Side, &'a Triples),
        embeddings: &mut dyn FnMut(&[u32]) -> Result<Tensor>,
    ) -> Result<Self> {
        let queries = queries(side, edges);
        let given = queries.iter().map(|query| query.given).collect::<Vec<_>>();
        let given = embeddings(&given)?;
        let right = embeddings(edges.ends(side))?;
        let asked: Vec<(Tensor, Vec<(u32, f32)>)> = queries
            .par_chunks(QUERIES)
            .enumerate()
            .map(|(chunk, queries)| {
                let first = chunk * QUERIES;
                let given = some(&given, (first..first + queries.len()).map(|row| row as u32));
                let relations: Vec<u32> = queries.iter().map(|query| query.relation).collect();
                let asked = decoder.query(params, side, &given, &relations);
                let edges: Vec<u32> = queries.iter().flat_map(|q| &q.edges).copied().collect();
                let right = decoder.candidate(params, side, &some(&right, edges.iter().copied()));
                let scores = scores(decoder, params, &asked, &right);
                let of = queries.iter().enumerate().flat_map(|(i, q)| vec![i; q.edges.len()]);
                let own = of.zip(edges).enumerate();
                let own = own.map(|(j, (i, edge))| (edge, scores.row(i)[j])).collect();
                (asked, own)
            })
            .collect();
        let mut own = vec![0.0; edges.len()];
        asked.iter().flat_map(|(_, found)| found).for_each(|&(edge, s)| own[edge as usize] = s);
        let asked = asked.into_iter().map(|(asked, _)| asked).collect();
        Ok(Self { decoder, params, known, side, edges, queries, asked, own })
    }

    /// Candidates of a block for which scores take at most `memory` bytes on all threads of the rayon pool this is called
    /// from, or as few as are worth a product.
    pub fn block(memory: usize) -> usize {
        (memory / rayon::current_num_threads() / (4 * QUERIES)).clamp(256, 1 << 14)
    }

    /// Counts a block of candidates with these embeddings, for each edge, on the rayon pool this is called from. All of them
    /// are in the range `nodes`; `row` is that of a node, if it is among them.
    pub fn count(
        &self,
        (block, nodes): (&Tensor, &Range<u32>),
        row: &(dyn Fn(u32) -> Option<usize> + Sync),
        counts: &mut [Beaten],
    ) {
        let candidates = self.decoder.candidate(self.params, self.side, block);
        let found: Vec<Vec<(u32, Beaten)>> = self
            .queries
            .par_chunks(QUERIES)
            .zip(&self.asked)
            .map(|(queries, asked)| self.chunk((queries, asked), (&candidates, nodes), row))
            .collect();
        for (edge, beaten) in found.into_iter().flatten() {
            counts[edge as usize].add(beaten);
        }
    }

    fn chunk(
        &self,
        (queries, asked): (&[Query], &Tensor),
        (candidates, nodes): (&Tensor, &Range<u32>),
        row: &(dyn Fn(u32) -> Option<usize> + Sync),
    ) -> Vec<(u32, Beaten)> {
        let scores = scores(self.decoder, self.params, asked, candidates);
        let ends = self.edges.ends(self.side);
        let mut found = Vec::new();
        for (i, query) in queries.iter().enumerate() {
            let known = self.known.ends(self.side, query.given, query.relation);
            // They ascend: a query with many known edges does not go through all of them for each block.
            let first = known.partition_point(|node| *node < nodes.start);
            let end = known.partition_point(|node| *node < nodes.end);
            let known: Vec<(u32, usize)> =
                known[first..end].iter().filter_map(|&node| Some((node, row(node)?))).collect();
            for &edge in &query.edges {
                let right = ends[edge as usize];
                let own = self.own[edge as usize];
                found.push((edge, beaten(scores.row(i), own, (right, row(right)), &known)));
            }
        }
        found
    }
}

/// Rows of a tensor.
fn some(rows: &Tensor, wanted: impl ExactSizeIterator<Item = u32>) -> Tensor {
    let mut out = Tensor::scratch(wanted.len(), rows.cols());
    let each = out.data_mut().chunks_exact_mut(rows.cols().max(1)).zip(wanted);
    each.for_each(|(out, row)| out.copy_from_slice(rows.row(row as usize)));
    out
}

/// Scores of all pairs, on the calling thread.
fn scores(decoder: &dyn Decoder, params: &Params, queries: &Tensor, candidates: &Tensor) -> Tensor {
    let mut scores = Tensor::scratch(queries.rows(), candidates.rows());
    let width = candidates.cols();
    let pair = Pair { queries: queries.data(), candidates: candidates.data(), width };
    decoder.similarity(params).scores(scores.data_mut(), pair);
    scores
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

/// The candidates with these scores that stand above `own`, the score of node `right`, or equal it; `right` and `known` are
/// nodes with their places among the scores. A NaN score ranks above every other.
fn beaten(
    scores: &[f32],
    own: f32,
    (right, place): (u32, Option<usize>),
    known: &[(u32, usize)],
) -> Beaten {
    let mut counts = [0; 2];
    count(scores, own, &mut counts);
    if let Some(place) = place {
        counts = less(counts, scores[place], own);
    }
    let raw = counts;
    for &(_, place) in known.iter().filter(|(node, _)| *node != right) {
        counts = less(counts, scores[place], own);
    }
    Beaten { filtered: counts.map(u64::from), raw: raw.map(u64::from) }
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
        let found = beaten(&scores, 0.5, (0, Some(0)), &[(0, 0), (1, 1), (3, 3)]);
        assert_eq!(found, Beaten { raw: [3, 1], filtered: [2, 1] });
        assert_eq!(found.rank(), Rank { raw: 2 + 2 * 3 + 1, filtered: 2 + 2 * 2 + 1 });
        let elsewhere = beaten(&scores, 0.5, (9, None), &[(4, 4)]);
        assert_eq!(elsewhere, Beaten { raw: [3, 2], filtered: [2, 2] });
        let last = beaten(&scores, f32::NAN, (5, Some(5)), &[]);
        assert_eq!(last.raw, [5, 0], "what is no number does not stand above others");
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
            for block in [7, 30] {
                for side in Side::BOTH {
                    let mut embeddings = |nodes: &[u32]| Ok(some(&rows, nodes.iter().copied()));
                    let model = (decoder.as_ref(), &params);
                    let ranking =
                        Ranking::new(model, &known, (side, &edges), &mut embeddings).unwrap();
                    let mut counts = vec![Beaten::default(); edges.len()];
                    for first in (0..nodes as usize).step_by(block) {
                        let here = first..(first + block).min(nodes as usize);
                        let rows = some(&rows, here.start as u32..here.end as u32);
                        let row = |node: u32| {
                            here.contains(&(node as usize)).then(|| node as usize - here.start)
                        };
                        let bounds = here.start as u32..here.end as u32;
                        ranking.count((&rows, &bounds), &row, &mut counts);
                    }
                    let ranks: Vec<Rank> = counts.iter().map(|counts| counts.rank()).collect();
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
