//! The candidates of the highest scores.

use std::cmp::Ordering;

use rayon::prelude::*;

use super::Similarity;
use super::similarity::Pair;
use crate::Tensor;

/// Queries scored together.
const QUERIES: usize = 64;
/// Candidates kept beyond twice the number asked for, before the lowest are dropped.
const SPARE: usize = 64;

/// A candidate and its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Its number.
    pub node: u32,
    /// Its score.
    pub score: f32,
}

/// The `k` candidates of the highest scores of each query; of equal scores, the lower numbers. A score that is no
/// number is below all others.
#[derive(Debug)]
pub struct TopK {
    k: usize,
    best: Vec<Best>,
}

#[derive(Debug, Clone, Default)]
struct Best {
    found: Vec<Candidate>,
    /// The lowest of the best `k` when the others were dropped last.
    bound: Option<Candidate>,
}

impl TopK {
    /// No candidates yet of so many queries.
    pub fn new(queries: usize, k: usize) -> Self {
        Self { k, best: vec![Best::default(); queries] }
    }

    /// Compares all queries, one row each, with candidates, one row each and numbered from `first` on, except for those
    /// that `left_out` lists in ascending order, on the rayon pool this is called from.
    ///
    /// # Panics
    /// If there are not as many rows as queries.
    pub fn add<'s>(
        &mut self,
        similarity: Similarity<'_>,
        queries: &Tensor,
        (first, candidates): (u32, &Tensor),
        left_out: impl Fn(usize) -> &'s [u32] + Sync,
    ) {
        assert_eq!(queries.rows(), self.best.len(), "one row a query");
        let (k, width, nodes) = (self.k, candidates.cols(), candidates.rows());
        if k == 0 || nodes == 0 {
            return;
        }
        self.best.par_chunks_mut(QUERIES).enumerate().for_each(|(chunk, best)| {
            let start = chunk * QUERIES;
            let rows = &queries.data()[start * width..(start + best.len()) * width];
            let mut scores = vec![0.0; best.len() * nodes];
            let pair = Pair { queries: rows, candidates: candidates.data(), width };
            similarity.scores(&mut scores, pair);
            for (i, (best, scores)) in best.iter_mut().zip(scores.chunks_exact(nodes)).enumerate() {
                best.add(k, first, scores, left_out(start + i));
            }
        });
    }

    /// The candidates of each query, the highest score first.
    pub fn finish(self) -> Vec<Vec<Candidate>> {
        let of = |mut best: Best| {
            best.found.sort_unstable_by(order);
            best.found.truncate(self.k);
            best.found
        };
        self.best.into_par_iter().map(of).collect()
    }
}

impl Best {
    fn add(&mut self, k: usize, first: u32, scores: &[f32], left_out: &[u32]) {
        let mut left_out = &left_out[left_out.partition_point(|&node| node < first)..];
        for (node, &score) in (first..).zip(scores) {
            if left_out.first() == Some(&node) {
                left_out = &left_out[1..];
                continue;
            }
            let candidate = Candidate { node, score };
            if self.bound.is_some_and(|bound| order(&candidate, &bound) != Ordering::Less) {
                continue;
            }
            self.found.push(candidate);
            if self.found.len() >= 2 * k + SPARE {
                self.found.select_nth_unstable_by(k - 1, order);
                self.found.truncate(k);
                self.bound = self.found.last().copied();
            }
        }
    }
}

/// Higher scores first, then lower numbers.
fn order(a: &Candidate, b: &Candidate) -> Ordering {
    let scores = match (a.score.is_nan(), b.score.is_nan()) {
        // Both zeros are equal.
        (false, false) => b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal),
        (one, other) => one.cmp(&other),
    };
    scores.then(a.node.cmp(&b.node))
}

#[cfg(test)]
mod tests {
    use gnarl_common::rng::Key;

    use super::*;

    #[test]
    fn the_highest_scores_are_found_whatever_the_blocks() {
        let (nodes, width) = (1000, 3);
        let value = |word: u64, i: usize| (4.0 * Key::new(word).normal(i as u64) as f32).round();
        let tensor = |word: u64, rows: usize| {
            Tensor::from_vec(rows, width, (0..rows * width).map(|i| value(word, i)).collect())
        };
        let (queries, candidates) = (tensor(1, 100), tensor(2, nodes));
        let left_out: Vec<u32> = (0..nodes as u32).filter(|node| node % 7 == 0).collect();
        for (k, block) in [(1, 1000), (5, 64), (200, 333), (2000, 500)] {
            let mut top = TopK::new(queries.rows(), k);
            for first in (0..nodes).step_by(block) {
                let end = nodes.min(first + block);
                let rows = candidates.data()[first * width..end * width].to_vec();
                let rows = Tensor::from_vec(end - first, width, rows);
                top.add(Similarity::Product, &queries, (first as u32, &rows), |_| &left_out);
            }
            for (query, found) in top.finish().iter().enumerate() {
                let score = |node: u32| -> f32 {
                    let both = queries.row(query).iter().zip(candidates.row(node as usize));
                    both.map(|(a, b)| a * b).sum()
                };
                let nodes = (0..nodes as u32).filter(|node| node % 7 != 0);
                let mut all: Vec<Candidate> =
                    nodes.map(|node| Candidate { node, score: score(node) }).collect();
                all.sort_by(order);
                all.truncate(k);
                assert!(found == &all, "query {query}, k {k}");
            }
        }
    }

    #[test]
    fn what_is_no_number_comes_last() {
        let mut best = Best::default();
        best.add(9, 4, &[f32::NAN, 1.0, f32::NEG_INFINITY, 1.0], &[]);
        best.found.sort_unstable_by(order);
        let nodes: Vec<u32> = best.found.iter().map(|found| found.node).collect();
        assert_eq!(nodes, [5, 7, 6, 4]);
    }
}
