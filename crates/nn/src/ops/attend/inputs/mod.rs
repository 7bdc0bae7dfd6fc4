//! A layer of additive attention over inputs, in one pass: scores, their softmax, dropout, the weighted sums of raw rows,
//! and the projection of the sums (GAT: Veličković et al., ICLR 2018, eq. 1–6).
//!
//! The lists of a task are read once forward and once backward: a row is in the first-level cache from its score to its
//! sum, and from the gradient of its coefficient to that of the score vectors. Sums are in the second-level cache until
//! they are projected, and so are their gradients until they are spread over the edges. Inputs that learn get theirs
//! source by source.

mod backward;
mod forward;

use std::ops::Range;

use gnarl_common::profile::{self, Span, Work};
use gnarl_graph::blocks::Block;
use rayon::prelude::*;

use self::backward::{gradient_chunk, source_chunk};
use self::forward::sum_chunk;
use super::kept::Kept;
use super::{Drawn, EdgeAttention};
use crate::kernel::chunks::each_chunk;
use crate::kernel::elementwise::{add_column_sums, bias_then};
use crate::kernel::gemm::{Heads, View};
use crate::kernel::precision::{Precision, RightHeads};
use crate::kernel::products::{add_at_b, add_in_order};
use crate::kernel::spans::over_edges;
use crate::ops::activation::{self, Activation, Saved};
use crate::{ParamId, Tape, Tensor, Var};

/// Most bytes of the sums of a task, for the second-level cache.
const SUMS: usize = 512 << 10;
/// Most destinations of a task.
const ROWS: usize = 256;

impl<'b> Tape<'b> {
    /// `act(Σ_e α[e, h] · x[source of e] · w_h + b)`, heads side by side, where α is the softmax over the edges of a
    /// destination of `LeakyReLU((x · vectors)[source of e, h] + (x · vectors)[destination, heads + h])`. `x` has one row of
    /// `in` values a source; `vectors` is `in × 2·heads`, `w` is `in × heads·out`, `b` is `1 × heads·out`.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub(crate) fn attend_inputs(
        &mut self,
        block: &'b Block,
        x: Var,
        vectors: Var,
        (w, b): (ParamId, Option<ParamId>),
        (EdgeAttention { slope, dropout }, act): (EdgeAttention, Activation),
    ) -> Var {
        let params = self.params();
        let (rows, k) = self.shape(x);
        let (vector_rows, columns) = self.shape(vectors);
        let heads = columns / 2;
        let cols = params.shape(w).1;
        assert_eq!(rows, block.num_src(), "attend_inputs: one row a source");
        assert_eq!((vector_rows, columns), (k, 2 * heads), "attend_inputs: score vectors");
        assert!(params.shape(w).0 == k && heads > 0 && cols.is_multiple_of(heads), "attend_inputs");
        let drawn = Drawn { key: self.next_key(), first: 0 };
        let layer = Layer {
            block,
            vectors: transposed(self.value(vectors)),
            x: self.value(x).clone(),
            weight: params.get(w),
            bias: b.map(|b| params.get(b)),
            shape: Heads { heads, k, n: cols / heads },
            slope,
            kept: Kept::new(block, drawn, dropout),
            precision: self.precision(),
        };
        let is_training = self.is_training();
        let mut lists = Lists {
            scores: Tensor::scratch(block.num_edges(), heads),
            tops: Tensor::scratch(block.num_dst(), 2 * heads),
            sums: Tensor::scratch(if is_training { block.num_dst() } else { 0 }, heads * k),
        };
        let y = layer.forward(&mut lists, act);
        let saved = Saved::new(&y, act, is_training);
        self.push(y, true, move |grads, mut grad| {
            saved.backward(&mut grad);
            if let Some(b) = b {
                add_column_sums(grads.param(b), grad.data());
            }
            let left = View::rows(lists.sums.data(), heads * k);
            let of_sums = View::rows(grad.data(), cols);
            add_at_b(layer.precision, grads.param(w), layer.shape, grad.rows(), left, of_sums);
            let (to_vectors, to_x) = layer.backward(&lists, &grad, grads.wants(x));
            grads.add(vectors, transposed(&to_vectors));
            if let Some(to_x) = to_x {
                grads.add(x, to_x);
            }
        })
    }
}

/// Values of edges and of destinations that the backward pass reads.
struct Lists {
    /// Of each edge the sum of both scores, before the LeakyReLU, one a head.
    scores: Tensor,
    /// Of each destination the largest score behind the LeakyReLU, and the factor that normalizes the exponentials.
    tops: Tensor,
    /// The sums of rows, in training.
    sums: Tensor,
}

struct Layer<'b> {
    block: &'b Block,
    x: Tensor,
    /// Score vectors, one a row: of sources before those of destinations.
    vectors: Tensor,
    weight: &'b [f32],
    bias: Option<&'b [f32]>,
    shape: Heads,
    slope: f32,
    kept: Kept<'b>,
    precision: Precision,
}

/// A range of destinations.
struct Task<'a> {
    first: usize,
    scores: &'a mut [f32],
    tops: &'a mut [f32],
    /// Empty if sums are not kept.
    sums: &'a mut [f32],
    out: &'a mut [f32],
}

/// Gradients that those of the inputs are made of.
struct Gradients {
    /// Of each edge the coefficients after dropout, one a head.
    coefficients: Tensor,
    /// Of each edge the gradients of the scores, before the LeakyReLU.
    scores: Tensor,
    /// Of each destination the sums of the gradients of its edges' scores.
    lists: Tensor,
    /// The gradients of the sums of rows, if those of the inputs are wanted.
    sums: Tensor,
}

/// The values of [`Gradients`] of a range of destinations.
struct GradientTask<'a> {
    first: usize,
    coefficients: &'a mut [f32],
    scores: &'a mut [f32],
    lists: &'a mut [f32],
    sums: &'a mut [f32],
}

impl Layer<'_> {
    /// The ranges of destinations of tasks.
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let bytes = self.shape.heads * self.shape.k * size_of::<f32>();
        let rows = (SUMS / bytes.max(1)).clamp(1, ROWS);
        let lists = self.block.num_dst();
        (0..lists).step_by(rows).map(move |first| first..(first + rows).min(lists))
    }

    /// The values of the edges of some destinations.
    fn edge_values(&self, lists: &Range<usize>) -> usize {
        let indptr = self.block.indptr();
        (indptr[lists.end] - indptr[lists.start]) as usize * self.shape.heads
    }

    /// The layer's result; fills `lists`.
    fn forward(&self, lists: &mut Lists, act: Activation) -> Tensor {
        let Heads { heads, k, n } = self.shape;
        let _span = self.span("GAT layer", 4.0);
        let mut y = Tensor::scratch(self.block.num_dst(), heads * n);
        let right = RightHeads::new(self.precision, self.shape, View::rows(self.weight, heads * n));
        let keeps_sums = lists.sums.rows() > 0;
        let mut scores = lists.scores.data_mut();
        let mut tops = lists.tops.data_mut();
        let mut sums = lists.sums.data_mut();
        let mut out = y.data_mut();
        let task = |range: Range<usize>| Task {
            first: range.start,
            scores: take(&mut scores, self.edge_values(&range)),
            tops: take(&mut tops, range.len() * 2 * heads),
            sums: take(&mut sums, if keeps_sums { range.len() * heads * k } else { 0 }),
            out: take(&mut out, range.len() * heads * n),
        };
        let tasks: Vec<_> = self.ranges().map(task).collect();
        tasks.into_par_iter().for_each(|Task { first, scores, tops, sums, out }| {
            let rows = tops.len() / (2 * heads);
            let mut scratch = Tensor::scratch(if keeps_sums { 0 } else { rows }, heads * k);
            let sums = if keeps_sums { sums } else { scratch.data_mut() };
            sum_chunk(sums, scores, tops, first, self);
            if n > 0 {
                right.product(out, View::rows(sums, heads * k));
                bias_then(out, self.bias, |out| activation::forward(out, act));
            }
        });
        y
    }

    /// The gradient of the score vectors from that of the products, and that of the inputs if it is wanted.
    fn backward(
        &self,
        lists: &Lists,
        grad: &Tensor,
        wants_inputs: bool,
    ) -> (Tensor, Option<Tensor>) {
        let Heads { heads, k, n } = self.shape;
        let span = self.span("GAT layer (gradient)", 4.0);
        let weight = View::rows(self.weight, heads * n);
        let right = RightHeads::transposed(self.precision, self.shape, weight);
        let destinations = self.block.num_dst();
        let mut found = Gradients {
            coefficients: Tensor::scratch(self.block.num_edges(), heads),
            scores: Tensor::scratch(self.block.num_edges(), heads),
            lists: Tensor::scratch(destinations, heads),
            sums: Tensor::scratch(if wants_inputs { destinations } else { 0 }, heads * k),
        };
        let mut coefficients = found.coefficients.data_mut();
        let mut scores = found.scores.data_mut();
        let mut of_lists = found.lists.data_mut();
        let mut sums = found.sums.data_mut();
        let task = |range: Range<usize>| GradientTask {
            first: range.start,
            coefficients: take(&mut coefficients, self.edge_values(&range)),
            scores: take(&mut scores, self.edge_values(&range)),
            lists: take(&mut of_lists, range.len() * heads),
            sums: take(&mut sums, if wants_inputs { range.len() * heads * k } else { 0 }),
        };
        let tasks: Vec<_> = self.ranges().map(task).collect();
        let of_task = |task: GradientTask<'_>| {
            let rows = task.lists.len() / heads;
            let mut scratch = Tensor::scratch(if wants_inputs { 0 } else { rows }, heads * k);
            let sums = if wants_inputs { task.sums } else { scratch.data_mut() };
            let mut task = GradientTask { sums, ..task };
            if k > 0 {
                let of_rows = View::rows(grad.data(), heads * n).skip(task.first);
                right.product(task.sums, of_rows);
            }
            let mut to_vectors = Tensor::zeros(2 * heads, k);
            gradient_chunk(to_vectors.data_mut(), &mut task, lists, self);
            to_vectors
        };
        let partial: Vec<Tensor> = tasks.into_par_iter().map(of_task).collect();
        let mut to_vectors = Tensor::zeros(2 * heads, k);
        add_in_order(to_vectors.data_mut(), &partial);
        drop(span);
        (to_vectors, wants_inputs.then(|| self.to_inputs(&found)))
    }

    /// The gradient of the inputs.
    fn to_inputs(&self, found: &Gradients) -> Tensor {
        let Heads { heads, k, .. } = self.shape;
        let _span = over_edges("attention (gradient)", self.block.num_edges(), heads * k, 2.0);
        let mut to_x = Tensor::scratch(self.block.num_src(), k);
        each_chunk(to_x.data_mut(), ROWS * k.max(1), &|i, out| {
            source_chunk(out, i * ROWS, found, self)
        });
        to_x
    }

    /// The span of a pass over the lists that does `flops` for each value of a row and head, and multiplies once.
    fn span(&self, name: &'static str, flops: f64) -> Span {
        profile::kernel(name, || {
            let Heads { heads, k, n } = self.shape;
            let sizes = [self.block.num_edges(), self.block.num_dst(), heads, k, n];
            let [edges, lists, heads, k, n] = sizes.map(|size| size as f64);
            let values = edges * (k + heads + 1.0) + lists * heads * (k + n) + heads * k * n;
            Work { flops: heads * k * (flops * edges + 2.0 * lists * n), bytes: 4.0 * values }
        })
    }
}

/// Splits off the first values of a slice.
fn take<'a>(rest: &mut &'a mut [f32], len: usize) -> &'a mut [f32] {
    rest.split_off_mut(..len).expect("as many values as tasks take")
}

/// The transposed matrix.
fn transposed(of: &Tensor) -> Tensor {
    let (rows, cols) = of.shape();
    let mut to = Tensor::scratch(cols, rows);
    for (i, row) in to.data_mut().chunks_exact_mut(rows.max(1)).enumerate() {
        row.iter_mut().enumerate().for_each(|(j, value)| *value = of.data()[j * cols + i]);
    }
    to
}
