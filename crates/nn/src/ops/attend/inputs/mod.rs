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

use super::kept::Kept;
use super::{Drawn, EdgeAttention};
use crate::kernel::elementwise::add_column_sums;
use crate::kernel::gemm::{Heads, View};
use crate::kernel::precision::Precision;
use crate::kernel::products::add_at_b;
use crate::ops::activation::{Activation, Saved};
use crate::{ParamId, Tape, Tensor, Var};

/// Bytes that the sums of a task are to have, for the second-level cache.
const SUMS: usize = 512 << 10;
/// Fewest and most destinations of a task, of which each has a partial gradient of the score vectors.
const ROWS: (usize, usize) = (80, 128);

impl<'b> Tape<'b> {
    /// `act(Σ_e α[e, h] · x[source of e] · w_h + b)`, heads side by side, where α is the softmax over the edges of a
    /// destination of `LeakyReLU((x · vectors)[source of e, h] + (x · vectors)[destination, heads + h])`. `x` has one row
    /// of `in` values a source; `vectors` is `in × 2·heads`, `w` is `in × heads·out`, `b` is `1 × heads·out`.
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
        assert!(
            params.shape(w).0 == k && heads > 0 && cols.is_multiple_of(heads),
            "attend_inputs: weight"
        );
        assert!(
            b.is_none_or(|b| params.shape(b) == (1, cols)),
            "attend_inputs: bias is 1 × {cols}"
        );
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
        let keeps = self.is_training();
        let mut lists = Lists {
            scores: Tensor::scratch(if keeps { block.num_edges() } else { 0 }, heads),
            tops: Tensor::scratch(block.num_dst(), 2 * heads),
            sums: Tensor::scratch(if keeps { block.num_dst() } else { 0 }, heads * k),
            keeps,
        };
        let y = layer.forward(&mut lists, act);
        let saved = Saved::new(&y, act, keeps);
        self.push(y, true, move |grads, mut grad| {
            saved.backward(&mut grad);
            if let Some(b) = b {
                add_column_sums(grads.param(b), grad.data());
            }
            let left = View::rows(lists.sums.data(), heads * k);
            let of_sums = View::rows(grad.data(), cols);
            add_at_b(layer.precision, grads.param(w), layer.shape, grad.rows(), left, of_sums);
            let (to_vectors, to_x) = layer.backward(lists, &grad, grads.wants(x));
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
    /// The sums of rows.
    sums: Tensor,
    /// True if scores and sums are kept for the backward pass; else they have no rows.
    keeps: bool,
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

impl Layer<'_> {
    /// The ranges of destinations of tasks.
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let bytes = self.shape.heads * self.shape.k * size_of::<f32>();
        let rows = (SUMS / bytes.max(1)).clamp(ROWS.0, ROWS.1);
        let lists = self.block.num_dst();
        (0..lists).step_by(rows).map(move |first| first..(first + rows).min(lists))
    }

    /// The values of the edges of some destinations.
    fn edge_values(&self, lists: &Range<usize>) -> usize {
        let indptr = self.block.indptr();
        (indptr[lists.end] - indptr[lists.start]) as usize * self.shape.heads
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
