//! A GraphSAGE layer in one pass: mean of the neighbors, one product for both halves, bias,
//! activation and dropout (Hamilton et al., NeurIPS 2017, Algorithm 1 with the mean aggregator).

use gnarl_common::profile::{self, Span, Work};
use gnarl_graph::blocks::Block;
use rayon::prelude::*;

use super::activation::{self, Activation};
use super::dropout::{Mask, mask_rows};
use super::spmm::inverse_degrees;
use crate::kernel::chunks::each_chunk;
use crate::kernel::elementwise::{add_chunk, bias_then, column_sums, scale_relu_grad};
use crate::kernel::gather::{gather_chunk, gather_sum};
use crate::kernel::gemm::View;
use crate::kernel::precision::{Precision, Right};
use crate::kernel::products::add_in_order;
use crate::kernel::row_source::Rows;
use crate::kernel::saved::Saved;
use crate::{ParamId, Tape, Tensor, Var};

/// Destinations per task forward: their inputs stay in the second-level cache until multiplied.
const FORWARD_ROWS: usize = 256;
/// Destinations per task backward; each task holds a partial weight gradient.
const BACKWARD_ROWS: usize = 1024;

impl<'b> Tape<'b> {
    /// `dropout(act([x_dst | mean of sources] · w + b))`. `x` has one row of `in` values a
    /// source; `w` is `2·in × out`, the upper half for the destination itself; `b` is `1 × out`.
    /// The dropout mask belongs to the destinations' dataset ids.
    ///
    /// # Panics
    /// If the shapes disagree, or `dropout` is not in `[0, 1)`.
    pub fn sage(
        &mut self,
        block: &'b Block,
        x: Var,
        (w, b): (ParamId, Option<ParamId>),
        act: Activation,
        dropout: f32,
    ) -> Var {
        if dropout != 0.0 && act != Activation::Relu {
            let y = self.sage(block, x, (w, b), act, 0.0);
            return self.dropout(y, dropout, block.ids());
        }
        let ((rows, k), params) = (self.shape(x), self.params());
        let n = params.shape(w).1;
        assert_eq!(rows, block.num_src(), "sage: one row a source");
        assert_eq!(params.shape(w).0, 2 * k, "sage: the weight has 2 · {k} rows");
        let key = self.next_key().filter(|_| dropout != 0.0);
        let layer = Sage {
            block,
            k,
            n,
            weight: params.get(w),
            bias: b.map(|b| params.get(b)),
            act,
            mask: key.map(|key| Mask::new(key, dropout)),
            scale: inverse_degrees(block),
            precision: self.precision(),
        };
        let value = self.value(x).clone();
        let saved_rows = if self.is_training() { block.num_dst() } else { 0 };
        let mut cat = Saved::scratch(layer.precision, saved_rows, 2 * k);
        let y = layer.forward(&value, self.is_training().then_some(&mut cat));
        let saved = y.clone();
        self.push(y, true, move |grads, mut grad| {
            let mut to_cat = grads.wants(x).then(|| Tensor::scratch(block.num_dst(), 2 * k));
            let (weights, biases) = layer.backward(&mut grad, &saved, &cat, to_cat.as_mut());
            add_in_order(grads.param(w), &weights);
            if let Some(b) = b {
                biases.iter().for_each(|sum| add_chunk(grads.param(b), sum));
            }
            if let Some(to_cat) = to_cat {
                grads.add(x, layer.gather_back(&to_cat));
            }
        })
    }
}

struct Sage<'b> {
    block: &'b Block,
    k: usize,
    n: usize,
    weight: &'b [f32],
    bias: Option<&'b [f32]>,
    act: Activation,
    mask: Option<Mask>,
    scale: Vec<f32>,
    precision: Precision,
}

impl Sage<'_> {
    /// The layer's result. Fills `cat` with the product's left side if it is wanted.
    fn forward(&self, x: &Tensor, cat: Option<&mut Saved>) -> Tensor {
        let dst = self.block.num_dst();
        let k = self.k;
        let n = self.n;
        let mut y = Tensor::scratch(dst, n);
        if n == 0 {
            return y;
        }
        let _span = self.span("GraphSAGE layer", self.block.num_edges(), 1);
        let weight = View::rows(self.weight, n);
        let weight = &Right::new(self.precision, weight, (2 * k, n));
        match cat.filter(|_| k > 0) {
            None => each_chunk(y.data_mut(), FORWARD_ROWS * n, &|i, out| {
                let first = i * FORWARD_ROWS;
                let rows = out.len() / n;
                let mut cat = Tensor::scratch(rows, 2 * k);
                self.concatenate(first, x, cat.data_mut());
                weight.product(out, n, (rows, n, 2 * k), View::rows(cat.data(), 2 * k));
                self.finish(first, out);
            }),
            Some(cat) => {
                let chunks = y.data_mut().par_chunks_mut(FORWARD_ROWS * n);
                let chunks = chunks.zip(cat.chunks_mut(FORWARD_ROWS));
                chunks.enumerate().for_each(|(i, (out, cat))| {
                    let first = i * FORWARD_ROWS;
                    let shape = (out.len() / n, n, 2 * k);
                    cat.product(|cat| self.concatenate(first, x, cat), out, shape, weight);
                    self.finish(first, out);
                });
            }
        }
        y
    }

    /// The span of sums over so many edges, and of products with the weight or of its size.
    fn span(&self, name: &'static str, edges: usize, products: usize) -> Span {
        profile::kernel(name, || {
            let [edges, k, n, products] = [edges, self.k, self.n, products].map(|all| all as f64);
            let lists = self.block.num_dst() as f64;
            // The left side, which is written forward and read backward, in its precision; all else is of f32.
            let saved = 2.0 * lists * k * self.precision.bytes() as f64;
            let others = (products - 1.0) * 2.0 * lists * k + products * (2.0 * k + lists) * n;
            Work {
                flops: 2.0 * edges * k + 4.0 * products * lists * k * n,
                bytes: saved + 4.0 * (edges * (k + 1.0) + others),
            }
        })
    }

    /// Writes rows of the product's left side: of destinations from `first` on, their own and the mean of their neighbors'.
    fn concatenate(&self, first: usize, x: &Tensor, cat: &mut [f32]) {
        let k = self.k;
        if k == 0 {
            return;
        }
        for (i, row) in cat.chunks_exact_mut(2 * k).enumerate() {
            row[..k].copy_from_slice(x.row(first + i));
        }
        let (indptr, indices) = (self.block.indptr(), self.block.indices());
        let mean = |_: usize, d: usize| self.scale[d];
        let x = Rows::new(x.data(), k);
        gather_chunk(&mut cat[k..], 2 * k, first, indptr, indices, &x, &mean, None);
    }

    /// Adds the bias to products, and applies activation and dropout.
    fn finish(&self, first: usize, out: &mut [f32]) {
        bias_then(out, self.bias, |out| activation::forward(out, self.act));
        if let Some(mask) = &self.mask {
            let ids = &self.block.ids()[first..first + out.len() / self.n];
            mask_rows(out, None, ids, self.n, mask);
        }
    }

    /// Partial gradients of weight and bias, in order; the gradient of the product's left side
    /// goes to `to_cat`, its neighbor half already divided by the number of edges.
    fn backward(
        &self,
        grad: &mut Tensor,
        y: &Tensor,
        cat: &Saved,
        to_cat: Option<&mut Tensor>,
    ) -> (Vec<Tensor>, Vec<Vec<f32>>) {
        let (k, n) = (self.k, self.n);
        let products = if to_cat.is_some() { 2 } else { 1 };
        let _span = self.span("GraphSAGE layer (gradient)", 0, products);
        let transposed = View::rows(self.weight, n).t();
        let transposed =
            to_cat.is_some().then(|| Right::new(self.precision, transposed, (n, 2 * k)));
        let mut to_cat: Vec<Option<&mut [f32]>> = match to_cat {
            Some(t) if k > 0 => t.data_mut().chunks_mut(BACKWARD_ROWS * 2 * k).map(Some).collect(),
            _ => (0..y.rows().div_ceil(BACKWARD_ROWS)).map(|_| None).collect(),
        };
        let grads = grad.data_mut().par_chunks_mut(BACKWARD_ROWS * n.max(1));
        let chunks = grads.zip(y.data().par_chunks(BACKWARD_ROWS * n.max(1)));
        chunks
            .zip(to_cat.par_iter_mut())
            .enumerate()
            .map(|(i, ((grad, y), to_cat))| {
                let first = i * BACKWARD_ROWS;
                let rows = grad.len() / n;
                match &self.mask {
                    Some(mask) => scale_relu_grad(grad, y, mask.keep_scale),
                    None => activation::backward(grad, y, self.act),
                }
                let mut bias = vec![0.0; n];
                column_sums(&mut bias, grad);
                let mut weight = Tensor::scratch(2 * k, n);
                let dy = View::rows(grad, n);
                cat.gradient(weight.data_mut(), n, first..first + rows, dy);
                if let (Some(to_cat), Some(weight)) = (to_cat, &transposed) {
                    weight.product(to_cat, 2 * k, (rows, 2 * k, n), dy);
                    for (row, &s) in to_cat.chunks_exact_mut(2 * k).zip(&self.scale[first..]) {
                        row[k..].iter_mut().for_each(|v| *v *= s);
                    }
                }
                (weight, bias)
            })
            .unzip()
    }

    /// The gradient of `x` from that of the product's left side.
    fn gather_back(&self, to_cat: &Tensor) -> Tensor {
        let (transpose, k) = (self.block.transpose(), self.k);
        let mut to_x = Tensor::scratch(self.block.num_src(), k);
        if to_cat.data().is_empty() {
            to_x.data_mut().fill(0.0);
            return to_x;
        }
        let own = Rows { data: to_cat.data(), stride: 2 * k, cols: k };
        let mean = Rows { data: &to_cat.data()[k..], stride: 2 * k, cols: k };
        let csr = (&*transpose.indptr, &*transpose.dst);
        gather_sum(
            to_x.data_mut(),
            csr,
            mean,
            |_, _| 1.0,
            Some((own, self.block.num_dst(), &|_| 1.0)),
        );
        to_x
    }
}
