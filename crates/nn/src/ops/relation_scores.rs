//! Attention scores with weights of each edge type: `(x · W_r) · a_r = x · (W_r · a_r)`, so that
//! nothing needs to be projected for them.

use rayon::prelude::*;

use super::edge::by_destination;
use crate::kernel::chunks::each_chunk;
use crate::kernel::elementwise::add_chunk;
use crate::kernel::multiversion;
use crate::kernel::row_source::add_scaled;
use crate::relations::Span;
use crate::{Lists, Tape, Tensor, Var};

/// Lists whose gradients one task adds up.
const LISTS: usize = 1024;
/// Sources per task.
const ROWS: usize = 256;

impl<'b> Tape<'b> {
    /// `out[r·k + i, h] = Σ_f w[r·k + i, h·width + f] · a[r, h·width + f]`: for each of the
    /// `relations` rows of `a` the map from rows of `k` values to scores. `w` has `relations · k`
    /// rows and as many columns as `a`.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn relation_score_weights(&mut self, w: Var, a: Var, heads: usize) -> Var {
        let ((rows, cols), (relations, width)) = (self.shape(w), self.shape(a));
        assert!(cols == width && heads > 0 && cols % heads == 0, "scores of {cols} columns");
        assert!(relations > 0 && rows % relations == 0, "{rows} rows for {relations} relations");
        let (k, width) = (rows / relations, cols / heads);
        let (weight, vector) = (self.value(w).clone(), self.value(a).clone());
        let mut y = Tensor::scratch(rows, heads);
        for (i, out) in y.data_mut().iter_mut().enumerate() {
            let (row, h) = (i / heads, i % heads);
            let a = &vector.row(row / k)[h * width..(h + 1) * width];
            let w = &weight.row(row)[h * width..(h + 1) * width];
            *out = w.iter().zip(a).map(|(w, a)| w * a).sum();
        }
        self.push(y, self.needs_grad(w) || self.needs_grad(a), move |grads, grad| {
            let (mut to_w, mut to_a) =
                (Tensor::scratch(rows, cols), Tensor::zeros(relations, cols));
            for (i, &g) in grad.data().iter().enumerate() {
                let (row, h) = (i / heads, i % heads);
                let part = h * width..(h + 1) * width;
                let at = row / k * cols;
                let a = &vector.row(row / k)[part.clone()];
                let out = &mut to_w.data_mut()[row * cols + part.start..row * cols + part.end];
                add_scaled(out, a, g, true);
                let out = &mut to_a.data_mut()[at + part.start..at + part.end];
                add_scaled(out, &weight.row(row)[part], g, false);
            }
            grads.add(w, to_w);
            grads.add(a, to_a);
        })
    }

    /// `out[e, h] = Σ_i x[source of e, i] · u[r·k + i, h]` with the edge type `r` of the list of `e`:
    /// `spans` say which lists each edge type has, `u` has as many rows for each as `x` has columns.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn relation_scores(
        &mut self,
        lists: &'b impl Lists,
        spans: &'b [Span],
        x: Var,
        u: Var,
    ) -> Var {
        let ((rows, k), (weights, heads)) = (self.shape(x), self.shape(u));
        assert_eq!(rows, lists.num_src(), "relation_scores: one row a source");
        assert_eq!(spans.last().map_or(0, |span| span.rows.end), lists.num_dst(), "lists");
        assert!(spans.iter().all(|span| (span.weight + 1) * k <= weights), "relation_scores");
        let value = self.value(x).clone();
        // One row per relation and head, so that products run along rows.
        let vectors = by_head(self.value(u), k);
        let relation = relation_of_lists(spans, lists.num_dst());
        let mut y = Tensor::scratch(lists.num_edges(), heads);
        by_destination(y.data_mut(), lists, heads, |first, last, out| {
            score_chunk(out, (first, last), lists, &value, &vectors, &relation, heads);
        });
        self.push(y, self.needs_grad(x) || self.needs_grad(u), move |grads, grad| {
            if grads.wants(u) {
                let sums = vector_grads(lists, spans, &value, &grad, vectors.rows());
                grads.add(u, by_column(&sums, weights, heads));
            }
            if grads.wants(x) {
                let mut to_x = Tensor::zeros(rows, k);
                if k > 0 {
                    each_chunk(to_x.data_mut(), ROWS * k, &|i, out| {
                        source_chunk(out, i * ROWS, lists, &grad, &vectors, &relation);
                    });
                }
                grads.add(x, to_x);
            }
        })
    }
}

/// `[r·k + i, h]` as `[r·heads + h, i]`.
fn by_head(u: &Tensor, k: usize) -> Tensor {
    let heads = u.cols();
    let relations = u.rows().checked_div(k).unwrap_or(0);
    let mut out = Tensor::scratch(relations * heads, k);
    for (at, value) in out.data_mut().iter_mut().enumerate() {
        let (row, i) = (at / k, at % k);
        *value = u.row(row / heads * k + i)[row % heads];
    }
    out
}

/// `[r·heads + h, i]` as `[r·k + i, h]`.
fn by_column(u: &Tensor, rows: usize, heads: usize) -> Tensor {
    let k = u.cols();
    let mut out = Tensor::zeros(rows, heads);
    let of_relation = out.data_mut().chunks_exact_mut((k * heads).max(1)).enumerate();
    for (relation, out) in of_relation {
        for (i, row) in out.chunks_exact_mut(heads).enumerate() {
            for (h, value) in row.iter_mut().enumerate() {
                *value = u.row(relation * heads + h)[i];
            }
        }
    }
    out
}

fn relation_of_lists(spans: &[Span], lists: usize) -> Vec<u32> {
    let mut relation = vec![0; lists];
    spans.iter().for_each(|span| relation[span.rows.clone()].fill(span.weight as u32));
    relation
}

/// Gradients of the vectors, partial sums over fixed ranges of lists added in order.
fn vector_grads(
    lists: &impl Lists,
    spans: &[Span],
    x: &Tensor,
    grad: &Tensor,
    rows: usize,
) -> Tensor {
    let (k, heads) = (x.cols(), grad.cols());
    let pieces: Vec<(usize, usize, usize)> = spans
        .iter()
        .flat_map(|span| {
            let (end, weight) = (span.rows.end, span.weight);
            let starts = span.rows.clone().step_by(LISTS);
            starts.map(move |start| (start, (start + LISTS).min(end), weight))
        })
        .collect();
    let sums = pieces.par_iter().map(|&(first, last, _)| {
        let mut sum = vec![0.0; heads * k];
        for e in lists.indptr()[first] as usize..lists.indptr()[last] as usize {
            let row = x.row(lists.indices()[e] as usize);
            for (sum, &g) in sum.chunks_exact_mut(k.max(1)).zip(grad.row(e)) {
                add_scaled(sum, row, g, false);
            }
        }
        sum
    });
    let sums: Vec<Vec<f32>> = sums.collect();
    let mut out = Tensor::zeros(rows, k);
    for ((.., weight), sum) in pieces.iter().zip(&sums) {
        let at = weight * heads * k;
        add_chunk(&mut out.data_mut()[at..at + heads * k], sum);
    }
    out
}

multiversion! {
    fn score_chunk(
        out: &mut [f32],
        destinations: (usize, usize),
        lists: &impl Lists,
        x: &Tensor,
        vectors: &Tensor,
        relation: &[u32],
        heads: usize,
    ) {
        let mut rows = out.chunks_exact_mut(heads);
        for list in destinations.0..destinations.1 {
            let first = relation[list] as usize * heads;
            for (&source, out) in lists.sources(list).iter().zip(&mut rows) {
                let row = x.row(source as usize);
                for (h, out) in out.iter_mut().enumerate() {
                    *out = crate::kernel::head_rows::dot(row, vectors.row(first + h));
                }
            }
        }
    }
}

multiversion! {
    /// Gradients of the sources from `first` on.
    fn source_chunk(
        out: &mut [f32],
        first: usize,
        lists: &impl Lists,
        grad: &Tensor,
        vectors: &Tensor,
        relation: &[u32],
    ) {
        let (transpose, heads) = (lists.transpose(), grad.cols());
        for (i, out) in out.chunks_exact_mut(vectors.cols()).enumerate() {
            let s = first + i;
            for t in transpose.indptr[s] as usize..transpose.indptr[s + 1] as usize {
                let at = relation[transpose.dst[t] as usize] as usize * heads;
                for (h, &g) in grad.row(transpose.edge[t] as usize).iter().enumerate() {
                    add_scaled(out, vectors.row(at + h), g, false);
                }
            }
        }
    }
}
