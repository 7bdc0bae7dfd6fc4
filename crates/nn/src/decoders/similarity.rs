//! Similarities between queries and candidates.

use crate::kernel::distance::{self, Rows};
use crate::kernel::gemm::{View, gemm};

/// A measure that is higher for more similar vectors, computed for all pairs of some queries and
/// some candidates at once.
#[derive(Debug, Clone, Copy)]
pub enum Similarity<'a> {
    /// `⟨q, c⟩`.
    Product,
    /// `−‖q − c‖₂`, computed from products.
    Euclidean,
    /// `−Σ |q − c|`.
    Manhattan,
    /// `−Σ |q − c|` over complex numbers, whose real parts come first.
    Moduli,
    /// `w · relu(q + c) + b`, of these weights, the bias last.
    Rectified(&'a [f32]),
}

/// Queries and candidates to compare: `m × width` and `n × width` values.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub queries: &'a [f32],
    pub candidates: &'a [f32],
    pub width: usize,
}

impl Pair<'_> {
    fn shape(&self) -> (usize, usize, usize) {
        let width = self.width.max(1);
        (self.queries.len() / width, self.candidates.len() / width, self.width)
    }
}

/// Output buffers of the gradients of a comparison.
pub(super) struct PairGrads<'a> {
    /// Of the queries; overwritten.
    pub queries: &'a mut [f32],
    /// Of the candidates; overwritten.
    pub candidates: &'a mut [f32],
    /// Of the weights, if there are any; accumulated.
    pub weights: &'a mut [f32],
}

impl Similarity<'_> {
    /// Number of weights.
    pub(super) fn weights(&self) -> usize {
        match self {
            Self::Rectified(weights) => weights.len(),
            _ => 0,
        }
    }

    /// All scores, `m × n`, on the calling thread.
    pub(super) fn scores(&self, out: &mut [f32], pair: Pair<'_>) {
        let Pair { queries, candidates, width } = pair;
        let (m, n, k) = pair.shape();
        if m * n == 0 {
            return;
        }
        let rows = Rows { data: candidates, width };
        let product = |out: &mut [f32]| {
            if m == 1 {
                return distance::product(out, queries, rows);
            }
            let (q, c) = (View::rows(queries, width), View::rows(candidates, width));
            gemm(out, n, (m, n, k), q, c.t(), false);
        };
        let each = |out: &mut [f32], row: &dyn Fn(&mut [f32], &[f32])| {
            let pairs = out.chunks_exact_mut(n).zip(queries.chunks_exact(width));
            pairs.for_each(|(out, query)| row(out, query));
        };
        match *self {
            Self::Product => product(out),
            Self::Euclidean => {
                product(out);
                let lengths: Vec<f32> = candidates.chunks_exact(width).map(square).collect();
                each(out, &|out, query| distance::from_products(out, square(query), &lengths));
            }
            Self::Manhattan => each(out, &|out, query| distance::manhattan(out, query, rows)),
            Self::Moduli => each(out, &|out, query| distance::moduli(out, query, rows)),
            Self::Rectified(weights) => {
                each(out, &|out, query| distance::rectified(out, query, rows, weights));
            }
        }
    }

    /// Propagates the gradients of the `scores` back, on the calling thread.
    pub(super) fn backward(
        &self,
        to: PairGrads<'_>,
        pair: Pair<'_>,
        scores: &[f32],
        grads: &[f32],
    ) {
        let Pair { queries, candidates, width } = pair;
        let (m, n, k) = pair.shape();
        if m * n == 0 {
            to.queries.fill(0.0);
            to.candidates.fill(0.0);
            return;
        }
        let PairGrads { queries: to_queries, candidates: to_candidates, weights: to_weights } = to;
        let rows = Rows { data: candidates, width };
        let products = |to_queries: &mut [f32], to_candidates: &mut [f32], grads: &[f32]| {
            if m == 1 {
                to_queries.fill(0.0);
                to_candidates.fill(0.0);
                return distance::product_grad(to_queries, to_candidates, grads, queries, rows);
            }
            let g = View::rows(grads, n);
            let q = View::rows(queries, width);
            let c = View::rows(candidates, width);
            gemm(to_queries, width, (m, k, n), g, c, false);
            gemm(to_candidates, width, (n, k, m), g.t(), q, false);
        };
        if matches!(self, Self::Product) {
            return products(to_queries, to_candidates, grads);
        }
        if matches!(self, Self::Euclidean) {
            // Of s = −d the gradient is (c − q) / d: once more products, of gradients over distances.
            let over = |(&g, &s): (&f32, &f32)| if s < 0.0 { g / -s } else { 0.0 };
            let grads: Vec<f32> = grads.iter().zip(scores).map(over).collect();
            products(to_queries, to_candidates, &grads);
            let mut sums = vec![0.0; n];
            let rows = to_queries.chunks_exact_mut(width).zip(queries.chunks_exact(width));
            for ((to, query), grads) in rows.zip(grads.chunks_exact(n)) {
                subtract(to, query, grads.iter().sum());
                sums.iter_mut().zip(grads).for_each(|(sum, g)| *sum += g);
            }
            let rows = to_candidates.chunks_exact_mut(width).zip(candidates.chunks_exact(width));
            rows.zip(sums).for_each(|((to, candidate), sum)| subtract(to, candidate, sum));
            return;
        }
        to_queries.fill(0.0);
        to_candidates.fill(0.0);
        let each = to_queries.chunks_exact_mut(width).zip(queries.chunks_exact(width));
        for ((to, query), grads) in each.zip(grads.chunks_exact(n)) {
            match *self {
                Self::Manhattan => distance::manhattan_grad(to, to_candidates, grads, query, rows),
                Self::Rectified(weights) => {
                    let all = (&mut *to_candidates, &mut *to_weights);
                    distance::rectified_grad(to, all.0, all.1, grads, query, rows, weights);
                }
                _ => distance::moduli_grad(to, to_candidates, grads, query, rows),
            }
        }
    }
}

fn square(row: &[f32]) -> f32 {
    row.iter().map(|v| v * v).sum()
}

/// `to −= factor · row`.
fn subtract(to: &mut [f32], row: &[f32], factor: f32) {
    to.iter_mut().zip(row).for_each(|(to, v)| *to -= factor * v);
}
