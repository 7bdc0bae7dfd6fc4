//! Weighted sums over edges with several heads.

use super::edge::by_destination;
use crate::kernel::chunks::each_chunk;
use crate::kernel::head_rows::dot;
use crate::kernel::row_source::add_scaled;
use crate::kernel::spans::over_edges;
use crate::kernel::{multiversion, prefetch};
use crate::{Lists, Tape, Tensor, Var};

/// Rows per task.
const ROWS: usize = 128;
/// How many edges ahead rows are fetched into cache.
const AHEAD: usize = 4;

impl<'b> Tape<'b> {
    /// `out[d, h] = Σ_e w[e, h] · x[source of e, h]` over the edges of `d`: `x` has one row a
    /// source, made of one part a head side by side; `w` has one row an edge, one column a head. Rows
    /// without columns may have no heads.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn spmm_weighted(&mut self, block: &'b impl Lists, x: Var, w: Var) -> Var {
        let (cols, heads) = (self.shape(x).1, self.shape(w).1);
        assert!(cols.is_multiple_of(heads), "spmm_weighted: {cols} columns, {heads} heads");
        let width = cols.checked_div(heads).unwrap_or(0);
        self.head_sums(block, x, w, Shape { heads, width, step: width })
    }

    /// Like [`Tape::spmm_weighted`] with one `x` for all heads: `out[d, h] = Σ_e w[e, h] ·
    /// x[source of e]`. The result has one part as wide as `x` a head.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn spmm_heads(&mut self, block: &'b impl Lists, x: Var, w: Var) -> Var {
        let (width, heads) = (self.shape(x).1, self.shape(w).1);
        self.head_sums(block, x, w, Shape { heads, width, step: 0 })
    }

    fn head_sums(&mut self, block: &'b impl Lists, x: Var, w: Var, shape: Shape) -> Var {
        assert_eq!(self.shape(x).0, block.num_src(), "one row a source");
        assert_eq!(self.shape(w).0, block.num_edges(), "one row an edge");
        let (value, weights) = (self.value(x).clone(), self.value(w).clone());
        let y = forward(block, &value, &weights, shape);
        self.push(y, self.needs_grad(x) || self.needs_grad(w), move |grads, grad| {
            if grads.wants(w) {
                let mut to_w = Tensor::scratch(block.num_edges(), shape.heads);
                by_destination(to_w.data_mut(), block, shape.heads, |first, last, out| {
                    weight_chunk(out, (first, last), block, &value, &grad, shape);
                });
                grads.add(w, to_w);
            }
            if grads.wants(x) {
                grads.add(x, to_sources(block, &grad, &weights, value.shape(), shape));
            }
        })
    }
}

/// `out[d, h] = Σ_e weights[e, h] · x[source of e, h]`.
pub(super) fn forward(block: &impl Lists, x: &Tensor, weights: &Tensor, shape: Shape) -> Tensor {
    let cols = shape.heads * shape.width;
    let _span = over_edges("SpMM", block.num_edges(), cols, 2.0);
    let mut y = Tensor::scratch(block.num_dst(), cols);
    if cols > 0 {
        each_chunk(y.data_mut(), ROWS * cols, &|i, out| {
            forward_chunk(out, i * ROWS, block, x, weights, shape);
        });
    }
    y
}

/// `out[s, h] = Σ_e weights[e, h] · rows[destination of e, h]` over the edges of each source, of
/// shape `to`.
pub(super) fn to_sources(
    block: &impl Lists,
    rows: &Tensor,
    weights: &Tensor,
    to: (usize, usize),
    shape: Shape,
) -> Tensor {
    let _span = over_edges("SpMM", block.num_edges(), to.1, 2.0);
    let mut out = Tensor::zeros(to.0, to.1);
    if to.1 > 0 {
        each_chunk(out.data_mut(), ROWS * to.1, &|i, out| {
            source_chunk(out, i * ROWS, block, rows, weights, shape);
        });
    }
    out
}

/// Split of rows into heads: `width` values per head; head `h` starts at `h * step` in `x`.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) heads: usize,
    pub(super) width: usize,
    pub(super) step: usize,
}

multiversion! {
    fn forward_chunk(
        out: &mut [f32],
        first: usize,
        block: &impl Lists,
        x: &Tensor,
        weights: &Tensor,
        shape: Shape,
    ) {
        let Shape { heads, width, step } = shape;
        let indices = block.indices();
        for (i, out) in out.chunks_exact_mut(heads * width).enumerate() {
            let d = first + i;
            let edges = block.indptr()[d] as usize..block.indptr()[d + 1] as usize;
            if edges.is_empty() {
                out.fill(0.0);
            }
            for e in edges.clone() {
                if let Some(&next) = indices.get(e + AHEAD) {
                    prefetch(x.row(next as usize));
                }
                let (row, w) = (x.row(indices[e] as usize), weights.row(e));
                for (h, out) in out.chunks_exact_mut(width).enumerate() {
                    add_scaled(out, &row[h * step..h * step + width], w[h], e == edges.start);
                }
            }
        }
    }
}

multiversion! {
    /// Dot products of the rows of `grad` and of `x` at both endpoints of the edges into a range of
    /// destinations: gradients of the edges' weights.
    pub(super) fn weight_chunk(
        out: &mut [f32],
        destinations: (usize, usize),
        block: &impl Lists,
        x: &Tensor,
        grad: &Tensor,
        shape: Shape,
    ) {
        let Shape { heads, width, step } = shape;
        let (indices, mut rows) = (block.indices(), out.chunks_exact_mut(heads));
        for d in destinations.0..destinations.1 {
            let grad = grad.row(d);
            for (e, out) in (block.indptr()[d] as usize..block.indptr()[d + 1] as usize).zip(&mut rows) {
                if let Some(&next) = indices.get(e + AHEAD) {
                    prefetch(x.row(next as usize));
                }
                let row = x.row(indices[e] as usize);
                for (h, o) in out.iter_mut().enumerate() {
                    *o = dot(&grad[h * width..(h + 1) * width], &row[h * step..h * step + width]);
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
        block: &impl Lists,
        grad: &Tensor,
        weights: &Tensor,
        shape: Shape,
    ) {
        let Shape { heads, width, step } = shape;
        let transpose = block.transpose();
        let cols = if step == 0 { width } else { heads * width };
        for (i, out) in out.chunks_exact_mut(cols).enumerate() {
            let s = first + i;
            for t in transpose.indptr[s] as usize..transpose.indptr[s + 1] as usize {
                if let Some(&next) = transpose.dst.get(t + AHEAD) {
                    prefetch(grad.row(next as usize));
                }
                let grad = grad.row(transpose.dst[t] as usize);
                let w = weights.row(transpose.edge[t] as usize);
                for (h, grad) in grad.chunks_exact(width).enumerate() {
                    add_scaled(&mut out[h * step..h * step + width], grad, w[h], false);
                }
            }
        }
    }
}
