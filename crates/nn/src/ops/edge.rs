//! Values on edges: attention scores and their normalization. A value has one row per edge and
//! one column per head.

use gnarl_graph::blocks::Block;
use rayon::prelude::*;

use super::dropout::Mask;
use crate::kernel::chunks::each_chunk;
use crate::kernel::gather::gather_sum;
use crate::kernel::row_source::{Rows, add_scaled};
use crate::kernel::spans::{over_edges, over_values};
use crate::kernel::{math, multiversion};
use crate::{Lists, Tape, Tensor, Var};

/// Destinations per task.
const ROWS: usize = 256;

impl<'b> Tape<'b> {
    /// `out[e] = from_source[source of e] + from_destination[destination of e]`. `source` has one
    /// row per source, `destination` one per destination.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn sddmm_add(&mut self, block: &'b impl Lists, source: Var, destination: Var) -> Var {
        let heads = self.shape(source).1;
        assert_eq!(self.shape(source).0, block.num_src(), "sddmm_add: one row a source");
        assert_eq!(self.shape(destination), (block.num_dst(), heads), "sddmm_add");
        let (left, right) = (self.value(source), self.value(destination));
        let mut y = Tensor::scratch(block.num_edges(), heads);
        by_destination(y.data_mut(), block, heads, |first, last, out| {
            let mut rows = out.chunks_exact_mut(heads);
            for d in first..last {
                for (&s, out) in block.sources(d).iter().zip(&mut rows) {
                    for ((o, l), r) in out.iter_mut().zip(left.row(s as usize)).zip(right.row(d)) {
                        *o = l + r;
                    }
                }
            }
        });
        let needed = self.needs_grad(source) || self.needs_grad(destination);
        self.push(y, needed, move |grads, grad| {
            let edges = Rows::new(grad.data(), heads);
            if grads.wants(source) {
                let transpose = block.transpose();
                let mut to_source = Tensor::scratch(block.num_src(), heads);
                let csr = (&*transpose.indptr, &*transpose.edge);
                gather_sum(to_source.data_mut(), csr, edges, |_, _| 1.0, None);
                grads.add(source, to_source);
            }
            if grads.wants(destination) {
                grads.add(destination, list_sums(block, &grad));
            }
        })
    }

    /// `out[e] = edges[e] + lists[list of e]`: one row an edge, one a list.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn add_to_lists(&mut self, block: &'b impl Lists, edges: Var, lists: Var) -> Var {
        let heads = self.shape(edges).1;
        assert_eq!(self.shape(edges).0, block.num_edges(), "add_to_lists: one row an edge");
        assert_eq!(self.shape(lists), (block.num_dst(), heads), "add_to_lists: one row a list");
        let (mut y, of_lists) = (self.value(edges).clone(), self.value(lists).clone());
        by_destination(y.data_mut(), block, heads, |first, last, out| {
            let mut rows = out.chunks_exact_mut(heads);
            for list in first..last {
                for out in rows.by_ref().take(block.sources(list).len()) {
                    out.iter_mut().zip(of_lists.row(list)).for_each(|(o, v)| *o += v);
                }
            }
        });
        let needed = self.needs_grad(edges) || self.needs_grad(lists);
        self.push(y, needed, move |grads, grad| {
            if grads.wants(lists) {
                grads.add(lists, list_sums(block, &grad));
            }
            grads.add(edges, grad);
        })
    }

    /// Softmax over the edges of each destination, separately for each head.
    ///
    /// # Panics
    /// If `scores` has not one row an edge.
    pub fn edge_softmax(&mut self, block: &'b impl Lists, scores: Var) -> Var {
        let (edges, heads) = self.shape(scores);
        assert_eq!(edges, block.num_edges(), "edge_softmax: one row an edge");
        let span = over_edges("edge softmax", edges, heads, 4.0);
        let mut y = self.value(scores).clone();
        by_destination(y.data_mut(), block, heads, |first, last, out| {
            softmax_chunk(out, heads, &block.indptr()[first..=last]);
        });
        drop(span);
        let saved = y.clone();
        self.push(y, self.needs_grad(scores), move |grads, mut grad| {
            let _span = over_edges("edge softmax (gradient)", edges, heads, 4.0);
            by_destination(grad.data_mut(), block, heads, |first, last, out| {
                let from = block.indptr()[first] as usize * heads;
                let y = &saved.data()[from..from + out.len()];
                softmax_back_chunk(out, y, heads, &block.indptr()[first..=last]);
            });
            grads.add(scores, grad);
        })
    }

    /// The sum of each list's edge values, times a factor an edge if there are some: a row a list.
    ///
    /// # Panics
    /// If the numbers of rows or factors disagree.
    pub fn sum_edges(
        &mut self,
        block: &'b impl Lists,
        edges: Var,
        factors: Option<Vec<f32>>,
    ) -> Var {
        let (rows, cols) = self.shape(edges);
        assert_eq!(rows, block.num_edges(), "sum_edges: one row an edge");
        assert!(factors.as_ref().is_none_or(|all| all.len() == rows), "sum_edges: factors");
        let factor = move |edge: usize| factors.as_ref().map_or(1.0, |all| all[edge]);
        let sums = weighted_list_sums(block, self.value(edges), &factor);
        self.push(sums, self.needs_grad(edges), move |grads, grad| {
            let mut to_edges = Tensor::scratch(rows, cols);
            by_destination(to_edges.data_mut(), block, cols, |first, last, out| {
                let mut edge = block.indptr()[first] as usize;
                let mut rows = out.chunks_exact_mut(cols);
                for list in first..last {
                    for out in rows.by_ref().take(block.sources(list).len()) {
                        let factor = factor(edge);
                        out.iter_mut().zip(grad.row(list)).for_each(|(o, g)| *o = factor * g);
                        edge += 1;
                    }
                }
            });
            grads.add(edges, to_edges);
        })
    }

    /// Dropout on edge values; the mask belongs to the dataset ids of the edge's endpoints.
    ///
    /// # Panics
    /// If `x` has not one row an edge, or `p` is not in `[0, 1)`.
    pub fn edge_dropout(&mut self, block: &'b Block, x: Var, p: f32) -> Var {
        let Some(key) = self.next_key().filter(|_| p != 0.0) else { return x };
        assert_eq!(self.shape(x).0, block.num_edges(), "edge_dropout: one row an edge");
        let mut y = self.value(x).clone();
        drop_edges(&mut y, block, Mask::new(key, p));
        self.push(y, self.needs_grad(x), move |grads, mut grad| {
            drop_edges(&mut grad, block, Mask::new(key, p));
            grads.add(x, grad);
        })
    }
}

/// The sum of the edge values of each list.
fn list_sums(block: &impl Lists, edges: &Tensor) -> Tensor {
    weighted_list_sums(block, edges, &|_| 1.0)
}

fn weighted_list_sums(
    block: &impl Lists,
    edges: &Tensor,
    factor: &(impl Fn(usize) -> f32 + Sync),
) -> Tensor {
    let cols = edges.cols();
    let _span = over_edges("edge sums", edges.rows(), cols, 1.0);
    let mut sums = Tensor::scratch(block.num_dst(), cols);
    if cols > 0 {
        each_chunk(sums.data_mut(), ROWS * cols, &|i, out| {
            sum_chunk(out, i * ROWS, block, edges, factor);
        });
    }
    sums
}

fn drop_edges(values: &mut Tensor, block: &Block, mask: Mask) {
    let heads = values.cols();
    let _span = over_values("dropout", values.data().len());
    by_destination(values.data_mut(), block, heads, |first, last, out| {
        let mut rows = out.chunks_exact_mut(heads);
        for d in first..last {
            let of_destination = mask.narrowed(block.ids()[d]);
            for (&s, out) in block.sources(d).iter().zip(&mut rows) {
                let row = of_destination.row(block.ids()[s as usize]);
                for (h, o) in out.iter_mut().enumerate() {
                    *o *= of_destination.factor(row, h as u32);
                }
            }
        }
    });
}

/// Calls `f` in parallel for ranges of destinations with the part of `out` that belongs to their
/// edges.
pub(crate) fn by_destination(
    out: &mut [f32],
    block: &impl Lists,
    heads: usize,
    f: impl Fn(usize, usize, &mut [f32]) + Sync,
) {
    if heads == 0 {
        return;
    }
    let mut rest = out;
    let mut parts = Vec::with_capacity(block.num_dst().div_ceil(ROWS));
    for first in (0..block.num_dst()).step_by(ROWS) {
        let last = (first + ROWS).min(block.num_dst());
        let edges = (block.indptr()[last] - block.indptr()[first]) as usize;
        let (part, tail) = rest.split_at_mut(edges * heads);
        parts.push((first, last, part));
        rest = tail;
    }
    parts.into_par_iter().for_each(|(first, last, part)| f(first, last, part));
}

multiversion! {
    /// Sums of the edges of the lists from `first` on, each times its factor.
    fn sum_chunk(
        out: &mut [f32],
        first: usize,
        block: &impl Lists,
        edges: &Tensor,
        factor: &impl Fn(usize) -> f32,
    ) {
        for (i, out) in out.chunks_exact_mut(edges.cols()).enumerate() {
            let list = first + i;
            let all = block.indptr()[list] as usize..block.indptr()[list + 1] as usize;
            if all.is_empty() {
                out.fill(0.0);
            }
            for edge in all.clone() {
                add_scaled(out, edges.row(edge), factor(edge), edge == all.start);
            }
        }
    }
}

multiversion! {
    /// Softmax in place; `indptr` are the offsets of the chunk's destinations.
    fn softmax_chunk(values: &mut [f32], heads: usize, indptr: &[u32]) {
        let mut top = vec![0.0f32; heads];
        let range = |w: &[u32]| {
            (w[0] - indptr[0]) as usize * heads..(w[1] - indptr[0]) as usize * heads
        };
        for w in indptr.windows(2) {
            let values = &mut values[range(w)];
            top.fill(f32::NEG_INFINITY);
            for row in values.chunks_exact(heads) {
                top.iter_mut().zip(row).for_each(|(t, v)| *t = t.max(*v));
            }
            for row in values.chunks_exact_mut(heads) {
                row.iter_mut().zip(&top).for_each(|(v, t)| *v -= t);
            }
        }
        values.iter_mut().for_each(|v| *v = math::exp(*v));
        for w in indptr.windows(2) {
            let values = &mut values[range(w)];
            top.fill(0.0);
            for row in values.chunks_exact(heads) {
                top.iter_mut().zip(row).for_each(|(t, v)| *t += v);
            }
            top.iter_mut().for_each(|t| *t = 1.0 / *t);
            for row in values.chunks_exact_mut(heads) {
                row.iter_mut().zip(&top).for_each(|(v, t)| *v *= t);
            }
        }
    }
}

multiversion! {
    /// Turns gradients of the softmax `y` into those of the scores, in place.
    fn softmax_back_chunk(grad: &mut [f32], y: &[f32], heads: usize, indptr: &[u32]) {
        let mut dot = vec![0.0f32; heads];
        for w in indptr.windows(2) {
            let from = (w[0] - indptr[0]) as usize * heads;
            let to = (w[1] - indptr[0]) as usize * heads;
            let (grad, y) = (&mut grad[from..to], &y[from..to]);
            dot.fill(0.0);
            for (g, y) in grad.chunks_exact(heads).zip(y.chunks_exact(heads)) {
                for ((d, g), y) in dot.iter_mut().zip(g).zip(y) {
                    *d += g * y;
                }
            }
            for (g, y) in grad.chunks_exact_mut(heads).zip(y.chunks_exact(heads)) {
                for ((g, y), d) in g.iter_mut().zip(y).zip(&dot) {
                    *g = y * (*g - d);
                }
            }
        }
    }
}
