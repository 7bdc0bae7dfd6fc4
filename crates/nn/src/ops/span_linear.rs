//! Linear maps of rows with one weight per span, all in one operation.

use std::ops::Range;

use rayon::prelude::*;

use crate::kernel::elementwise::{add_chunk, column_sums};
use crate::kernel::gemm::{Heads, View};
use crate::kernel::precision::Precision;
use crate::kernel::products::add_in_order;
use crate::kernel::spans::product;
use crate::relations::Span;
use crate::{Tape, Tensor, Var};

/// Rows of a product computed by one task.
const ROWS: usize = 512;
/// Rows summed over by one task of a weight's gradient.
const DEPTH: usize = 2048;

/// The rows of a task, and their weight.
struct Piece {
    rows: Range<usize>,
    weight: usize,
}

impl<'b> Tape<'b> {
    /// `out[i] = x[i] · w[weight of i's span]`. `spans` follow each other and cover the rows of `x`;
    /// `w` holds one `x columns × out` matrix a weight, one below the other.
    ///
    /// # Panics
    /// If the shapes disagree or the spans do not cover the rows.
    pub fn span_linear(&mut self, x: Var, w: Var, spans: &'b [Span]) -> Var {
        self.span_linear_heads(x, w, spans, 1)
    }

    /// As [`Tape::span_linear`] with block-diagonal weights: a weight has `x columns / heads` rows,
    /// and part `h` of a row is multiplied by part `h` of its weight's columns.
    ///
    /// # Panics
    /// As [`Tape::span_linear`].
    pub fn span_linear_heads(&mut self, x: Var, w: Var, spans: &'b [Span], heads: usize) -> Var {
        let ((rows, cols), (weight_rows, out)) = (self.shape(x), self.shape(w));
        assert!(heads > 0 && cols % heads == 0 && out % heads == 0, "span_linear: {heads} heads");
        let shape = Heads { heads, k: cols / heads, n: out / heads };
        let weights = spans.iter().map(|span| span.weight + 1).max().unwrap_or(0);
        assert!(
            weights * shape.k <= weight_rows,
            "span_linear: {weights} weights of {weight_rows}"
        );
        let end = spans.iter().fold(0, |at, span| {
            assert_eq!(span.rows.start, at, "spans follow each other");
            span.rows.end
        });
        assert_eq!(end, rows, "spans cover the rows");
        let (left, right) = (self.value(x).clone(), self.value(w).clone());
        let precision = self.precision();
        let span = product("matrix product by relation", shape, rows);
        let mut y = Tensor::scratch(rows, out);
        by_piece(y.data_mut(), out, &pieces(spans, ROWS), |piece, y| {
            let a = View::rows(left.data(), cols).skip(piece.rows.start);
            let b = View::rows(right.data(), out).skip(piece.weight * shape.k);
            for h in 0..heads {
                let (a, b) = (a.skip_cols(h * shape.k), b.skip_cols(h * shape.n));
                let sizes = (piece.rows.len(), shape.n, shape.k);
                precision.product(&mut y[h * shape.n..], out, sizes, a, b);
            }
        });
        drop(span);
        self.push(y, self.needs_grad(x) || self.needs_grad(w), move |grads, grad| {
            if grads.wants(w) {
                grads.add(w, weight_grad(precision, &left, &grad, spans, shape, weight_rows));
            }
            if grads.wants(x) {
                grads.add(x, input_grad(precision, &grad, &right, spans, shape));
            }
        })
    }

    /// `out[i] = x[i] + b[weight of i's span]`, `b` having one row a weight.
    ///
    /// # Panics
    /// If the shapes disagree or the spans do not cover the rows.
    pub fn span_bias(&mut self, x: Var, b: Var, spans: &'b [Span]) -> Var {
        let ((rows, cols), (weights, width)) = (self.shape(x), self.shape(b));
        assert_eq!(cols, width, "span_bias");
        assert_eq!(spans.last().map_or(0, |span| span.rows.end), rows, "spans cover the rows");
        let mut y = self.value(x).clone();
        let bias = self.value(b).clone();
        by_piece(y.data_mut(), cols, &pieces(spans, ROWS), |piece, y| {
            y.chunks_exact_mut(cols).for_each(|row| add_chunk(row, bias.row(piece.weight)));
        });
        self.push(y, self.needs_grad(x) || self.needs_grad(b), move |grads, grad| {
            if grads.wants(b) {
                let pieces = pieces(spans, DEPTH);
                let sums = pieces.par_iter().map(|piece| {
                    let mut sum = vec![0.0; cols];
                    let rows = piece.rows.start * cols..piece.rows.end * cols;
                    if cols > 0 {
                        column_sums(&mut sum, &grad.data()[rows]);
                    }
                    sum
                });
                let sums: Vec<Vec<f32>> = sums.collect();
                let mut to_b = Tensor::zeros(weights, cols);
                for (piece, sum) in pieces.iter().zip(&sums) {
                    let at = piece.weight * cols;
                    add_chunk(&mut to_b.data_mut()[at..at + cols], sum);
                }
                grads.add(b, to_b);
            }
            grads.add(x, grad);
        })
    }
}

fn input_grad(
    precision: Precision,
    grad: &Tensor,
    weight: &Tensor,
    spans: &[Span],
    shape: Heads,
) -> Tensor {
    let Heads { heads, k, n } = shape;
    let (cols, out) = (heads * k, heads * n);
    let _span = product("matrix product by relation (input gradient)", shape, grad.rows());
    let mut to_x = Tensor::scratch(grad.rows(), cols);
    by_piece(to_x.data_mut(), cols, &pieces(spans, ROWS), |piece, to_x| {
        let a = View::rows(grad.data(), out).skip(piece.rows.start);
        let b = View::rows(weight.data(), out).skip(piece.weight * k);
        for h in 0..heads {
            let (a, b) = (a.skip_cols(h * n), b.skip_cols(h * n).t());
            precision.product(&mut to_x[h * k..], cols, (piece.rows.len(), k, n), a, b);
        }
    });
    to_x
}

/// Partial sums over fixed ranges of rows, those of a weight added in order.
fn weight_grad(
    precision: Precision,
    x: &Tensor,
    grad: &Tensor,
    spans: &[Span],
    shape: Heads,
    rows: usize,
) -> Tensor {
    let Heads { heads, k, n } = shape;
    let (cols, out) = (heads * k, heads * n);
    let _span = product("matrix product by relation (weight gradient)", shape, x.rows());
    let mut pieces = pieces(spans, DEPTH);
    pieces.sort_by_key(|piece| piece.weight);
    let mut to_w = Tensor::zeros(rows, out);
    if out * k == 0 {
        return to_w;
    }
    let of_weight: Vec<&[Piece]> = pieces.chunk_by(|a, b| a.weight == b.weight).collect();
    let mut rest = to_w.data_mut();
    let mut at = 0;
    let mut tasks = Vec::with_capacity(of_weight.len());
    for pieces in of_weight {
        let (_, tail) = std::mem::take(&mut rest).split_at_mut((pieces[0].weight - at) * k * out);
        let (own, tail) = tail.split_at_mut(k * out);
        tasks.push((pieces, own));
        (rest, at) = (tail, pieces[0].weight + 1);
    }
    tasks.into_par_iter().for_each(|(pieces, to_w)| {
        let partial = pieces.par_iter().map(|piece| {
            let mut sum = Tensor::scratch(k, out);
            let a = View::rows(x.data(), cols).skip(piece.rows.start);
            let b = View::rows(grad.data(), out).skip(piece.rows.start);
            for h in 0..heads {
                let (a, b) = (a.skip_cols(h * k).t(), b.skip_cols(h * n));
                let sizes = (k, n, piece.rows.len());
                precision.product(&mut sum.data_mut()[h * n..], out, sizes, a, b);
            }
            sum
        });
        add_in_order(to_w, &partial.collect::<Vec<_>>());
    });
    to_w
}

/// The spans, split into pieces of at most `rows` rows.
fn pieces(spans: &[Span], rows: usize) -> Vec<Piece> {
    let cut = |span: &Span| {
        let (end, weight) = (span.rows.end, span.weight);
        span.rows
            .clone()
            .step_by(rows)
            .map(move |start| Piece { rows: start..(start + rows).min(end), weight })
    };
    spans.iter().flat_map(cut).collect()
}

/// Calls `f` in parallel with each piece and its rows of `out`.
fn by_piece(out: &mut [f32], cols: usize, pieces: &[Piece], f: impl Fn(&Piece, &mut [f32]) + Sync) {
    if cols == 0 {
        return;
    }
    let mut rest = out;
    let mut tasks = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let (own, tail) = rest.split_at_mut(piece.rows.len() * cols);
        tasks.push((piece, own));
        rest = tail;
    }
    tasks.into_par_iter().for_each(|(piece, own)| f(piece, own));
}
