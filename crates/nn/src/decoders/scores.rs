//! Scores of many queries, each against the candidates of its group, and their gradients.

use std::ops::Range;

use rayon::prelude::*;

use super::Similarity;
use super::similarity::{Pair, PairGrads};
use crate::Tensor;
use crate::kernel::elementwise::add_chunk;
use crate::kernel::spans::over_edges;

/// Queries per task.
const ROWS: usize = 128;

/// The group of candidates of each query. All groups are equally large.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    /// The group of each query. Successive queries of one group are compared together.
    of: Vec<u32>,
    /// Candidates of a group.
    count: usize,
}

/// Successive queries of one group.
struct Run {
    queries: Range<usize>,
    group: usize,
}

impl Groups {
    /// Queries of the groups `of`, which have `count` candidates each.
    pub fn new(of: Vec<u32>, count: usize) -> Self {
        Self { of, count }
    }

    /// One group of candidates, shared by all queries.
    pub fn shared(queries: usize, count: usize) -> Self {
        Self { of: vec![0; queries], count }
    }

    /// One group of candidates per query.
    pub fn each(queries: usize, count: usize) -> Self {
        Self { of: (0..queries as u32).collect(), count }
    }

    /// Number of candidates per query.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of queries.
    pub fn queries(&self) -> usize {
        self.of.len()
    }

    /// The group of each query.
    pub fn of(&self) -> &[u32] {
        &self.of
    }

    /// Returns whether query `i` has group `i`.
    fn are_own(&self) -> bool {
        self.of.iter().enumerate().all(|(query, &group)| query == group as usize)
    }

    fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut start = 0;
        for same in self.of.chunk_by(|a, b| a == b) {
            for part in same.chunks(ROWS) {
                let queries = start..start + part.len();
                start = queries.end;
                runs.push(Run { queries, group: same[0] as usize });
            }
        }
        runs
    }

    fn pair<'a>(&self, run: &Run, queries: &'a Tensor, candidates: &'a Tensor) -> Pair<'a> {
        let width = queries.cols();
        let group = run.group * self.count * width..(run.group + 1) * self.count * width;
        Pair {
            queries: &queries.data()[run.queries.start * width..run.queries.end * width],
            candidates: &candidates.data()[group],
            width,
        }
    }
}

/// Scores of `queries` against the candidates of their groups, `queries × groups.count()`; `candidates`
/// has the rows of all groups, one after the other.
///
/// # Panics
/// If there are fewer rows, or widths differ.
pub fn score(
    similarity: Similarity<'_>,
    queries: &Tensor,
    candidates: &Tensor,
    groups: &Groups,
) -> Tensor {
    assert_eq!((queries.rows(), queries.cols()), (groups.queries(), candidates.cols()));
    let _span = over_edges("decoder scores", queries.rows() * groups.count, queries.cols(), 2.0);
    let mut out = Tensor::scratch(queries.rows(), groups.count);
    let runs = groups.runs();
    let tasks = cut(out.data_mut(), &runs, groups.count);
    // A task of few comparisons would cost more to hand out than to do.
    runs.par_iter().with_min_len(least(&runs)).zip(tasks).for_each(|(run, out)| {
        similarity.scores(out, groups.pair(run, queries, candidates));
    });
    out
}

/// Gradients of queries, of candidates, and of the weights of the similarity, from those of `scores`.
///
/// # Panics
/// As [`score`].
pub fn score_backward(
    similarity: Similarity<'_>,
    queries: &Tensor,
    candidates: &Tensor,
    groups: &Groups,
    scores: &Tensor,
    grads: &Tensor,
) -> (Tensor, Tensor, Vec<f32>) {
    let _span =
        over_edges("decoder scores (gradient)", queries.rows() * groups.count, queries.cols(), 4.0);
    if groups.are_own() {
        return own_backward(similarity, queries, candidates, groups, scores, grads);
    }
    let (width, count) = (queries.cols(), groups.count);
    let mut to_queries = Tensor::scratch(queries.rows(), width);
    let runs = groups.runs();
    let tasks = cut(to_queries.data_mut(), &runs, width);
    let partial: Vec<(Tensor, Vec<f32>)> = runs
        .par_iter()
        .zip(tasks)
        .map(|(run, to_queries)| {
            let mut to_candidates = Tensor::scratch(count, width);
            let mut weights = vec![0.0; similarity.weights()];
            let to = PairGrads {
                queries: to_queries,
                candidates: to_candidates.data_mut(),
                weights: &mut weights,
            };
            let own = run.queries.start * count..run.queries.end * count;
            let (scores, grads) = (&scores.data()[own.clone()], &grads.data()[own]);
            similarity.backward(to, groups.pair(run, queries, candidates), scores, grads);
            (to_candidates, weights)
        })
        .collect();
    let mut to_candidates = Tensor::zeros(candidates.rows(), width);
    let mut weights = vec![0.0; similarity.weights()];
    for (run, (part, part_weights)) in runs.iter().zip(&partial) {
        let at = run.group * count * width;
        add_chunk(&mut to_candidates.data_mut()[at..at + count * width], part.data());
        add_chunk(&mut weights, part_weights);
    }
    (to_queries, to_candidates, weights)
}

/// [`score_backward`] where no two queries share candidates: only gradients of weights are summed.
fn own_backward(
    similarity: Similarity<'_>,
    queries: &Tensor,
    candidates: &Tensor,
    groups: &Groups,
    scores: &Tensor,
    grads: &Tensor,
) -> (Tensor, Tensor, Vec<f32>) {
    let (width, count) = (queries.cols(), groups.count);
    let mut to_queries = Tensor::scratch(queries.rows(), width);
    let mut to_candidates = Tensor::zeros(candidates.rows(), width);
    let (rows, group) = (width.max(1), (count * width).max(1));
    let partial: Vec<Vec<f32>> = to_queries
        .data_mut()
        .par_chunks_mut(ROWS * rows)
        .zip(to_candidates.data_mut().par_chunks_mut(ROWS * group))
        .enumerate()
        .map(|(i, (to_queries, to_candidates))| {
            let mut weights = vec![0.0; similarity.weights()];
            let each = to_queries.chunks_exact_mut(rows).zip(to_candidates.chunks_exact_mut(group));
            for (j, (queries_row, candidate_rows)) in each.enumerate() {
                let query = i * ROWS + j;
                let to = PairGrads {
                    queries: queries_row,
                    candidates: candidate_rows,
                    weights: &mut weights,
                };
                let run = Run { queries: query..query + 1, group: query };
                let pair = groups.pair(&run, queries, candidates);
                similarity.backward(to, pair, scores.row(query), grads.row(query));
            }
            weights
        })
        .collect();
    let mut weights = vec![0.0; similarity.weights()];
    partial.iter().for_each(|part| add_chunk(&mut weights, part));
    (to_queries, to_candidates, weights)
}

/// Fewest runs per task.
fn least(runs: &[Run]) -> usize {
    let queries = runs.last().map_or(0, |run| run.queries.end);
    (ROWS * runs.len()).div_ceil(queries.max(1)).max(1)
}

/// Splits rows of `width` values into those of each run.
fn cut<'a>(mut rows: &'a mut [f32], runs: &[Run], width: usize) -> Vec<&'a mut [f32]> {
    let mut out = Vec::with_capacity(runs.len());
    for run in runs {
        let (own, rest) = rows.split_at_mut(run.queries.len() * width);
        out.push(own);
        rows = rest;
    }
    out
}
