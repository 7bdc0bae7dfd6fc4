//! Linear maps with bias and activation.

use std::sync::Arc;

use super::activation::{self, Activation, Saved};
use crate::kernel::elementwise;
use crate::kernel::elementwise::{add_column_sums, bias_then};
use crate::kernel::gather::gather_sum;
use crate::kernel::gemm::{Heads, View};
use crate::kernel::precision::Precision;
use crate::kernel::products::{DEPTH, a_b, a_bt, add_a_b, add_at_b};
use crate::kernel::row_source::Rows;
use crate::{ParamId, SparseRows, Tape, Tensor, Var};

impl Tape<'_> {
    /// `act(x · w + b)`: `x` is dense or sparse with `in` columns, `w` is `in × out`, `b` is
    /// `1 × out`.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn linear(&mut self, x: Var, w: ParamId, b: Option<ParamId>, act: Activation) -> Var {
        if let Some((sparse, rows)) = self.sparse_value(x) {
            return self.linear_sparse(sparse, rows, (w, b), act);
        }
        self.linear_heads(x, w, b, 1, act)
    }

    /// A linear map for each head: `x` has `heads` parts of `in` columns side by side, and part
    /// `h` is multiplied by columns `h·out..(h + 1)·out` of `w` (`in × heads·out`).
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn linear_heads(
        &mut self,
        x: Var,
        w: ParamId,
        b: Option<ParamId>,
        heads: usize,
        act: Activation,
    ) -> Var {
        let ((rows, cols), params) = (self.shape(x), self.params());
        let (k, out) = params.shape(w);
        assert!(heads * k == cols && out % heads == 0, "linear: {cols} columns, {heads} heads");
        assert!(b.is_none_or(|b| params.shape(b) == (1, out)), "linear: bias is 1 × {out}");
        let (weight, bias) = (params.get(w), b.map(|b| params.get(b)));
        let shape = Heads { heads, k, n: out / heads };
        let mut x_value = self.value(x).clone();
        let precision = self.precision();
        let mut y = Tensor::scratch(rows, out);
        let (left, right) = (View::rows(x_value.data(), cols), View::rows(weight, out));
        a_b(precision, y.data_mut(), shape, left, right, |rows| {
            bias_then(rows, bias, |rows| activation::forward(rows, act));
        });
        let saved = Saved::new(&y, act, self.is_training());
        self.push(y, true, move |grads, mut grad| {
            saved.backward(&mut grad);
            if let Some(b) = b {
                add_column_sums(grads.param(b), grad.data());
            }
            if let Some(x_data) = x_value.unique().filter(|_| grads.wants(x)) {
                let dy = View::rows(grad.data(), out);
                let to_weight = grads.param(w);
                let weight = View::rows(weight, out);
                replace_by_gradient(precision, x_data, shape, dy, to_weight, weight);
                return grads.add(x, x_value);
            }
            let (dy, left) = (View::rows(grad.data(), out), View::rows(x_value.data(), cols));
            add_at_b(precision, grads.param(w), shape, rows, left, dy);
            if grads.wants(x) {
                let mut to_x = Tensor::scratch(rows, cols);
                a_bt(precision, to_x.data_mut(), shape, dy, View::rows(weight, out));
                grads.add(x, to_x);
            }
        })
    }

    /// `sum + x · w`, where `sum` is used for the last time: its buffer is that of the result, unless a backward pass
    /// reads it.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub(crate) fn add_linear_last(&mut self, sum: Var, x: Var, w: ParamId) -> Var {
        if self.is_training() || self.is_sparse(x) {
            let mapped = self.linear(x, w, None, Activation::None);
            return self.add(sum, mapped);
        }
        let (k, n) = self.params().shape(w);
        let rows = self.shape(x).0;
        assert_eq!((self.shape(x), self.shape(sum)), ((rows, k), (rows, n)), "add_linear");
        let mut y = self.take(sum);
        let (left, right) = (View::rows(self.value(x).data(), k), self.params().get(w));
        let shape = Heads { heads: 1, k, n };
        add_a_b(self.precision(), y.data_mut(), shape, left, View::rows(right, n));
        self.push(y, false, |_, _| ())
    }

    fn linear_sparse(
        &mut self,
        x: Arc<SparseRows>,
        rows: usize,
        (w, b): (ParamId, Option<ParamId>),
        act: Activation,
    ) -> Var {
        let params = self.params();
        let (n, bias) = (params.shape(w).1, b.map(|b| params.get(b)));
        let mut y = Tensor::scratch(rows, n);
        let values = x.values();
        let weight = Rows::new(params.get(w), n);
        gather_sum(y.data_mut(), (x.indptr(), x.indices()), weight, |e, _| values[e], None);
        if n > 0 {
            elementwise::each_rows(y.data_mut(), n, |rows| {
                bias_then(rows, bias, |rows| activation::forward(rows, act));
            });
        }
        let saved = Saved::new(&y, act, self.is_training());
        self.push(y, true, move |grads, mut grad| {
            saved.backward(&mut grad);
            if let Some(b) = b {
                add_column_sums(grads.param(b), grad.data());
            }
            let (indptr, row_of, values) = x.by_column(rows);
            let mut to_w = Tensor::scratch(x.cols(), n);
            let dy = Rows::new(grad.data(), n);
            gather_sum(to_w.data_mut(), (&indptr, &row_of), dy, |e, _| values[e], None);
            elementwise::add_assign(grads.param(w), to_w.data());
        })
    }

    /// Sparse input as a dense constant.
    ///
    /// # Panics
    /// If `x` is not sparse.
    pub fn densify(&mut self, x: Var) -> Var {
        let (sparse, rows) = self.sparse_value(x).expect("densify takes sparse input");
        let mut dense = Tensor::zeros(rows, sparse.cols());
        for r in 0..rows {
            for e in sparse.indptr()[r] as usize..sparse.indptr()[r + 1] as usize {
                let at = r * sparse.cols() + sparse.indices()[e] as usize;
                dense.data_mut()[at] += sparse.values()[e];
            }
        }
        self.dense(dense)
    }
}

/// Rows whose left side is replaced at once.
const REPLACED: usize = 8 * DEPTH;

/// Overwrites the left side of a product by its gradient, since nothing else reads it, and adds the
/// gradient of the right side `weight` to `to_weight`: the same values as with a second matrix.
fn replace_by_gradient(
    precision: Precision,
    x: &mut [f32],
    shape: Heads,
    grad: View<'_>,
    to_weight: &mut [f32],
    weight: View<'_>,
) {
    let cols = shape.heads * shape.k;
    for (i, x) in x.chunks_mut(REPLACED * cols.max(1)).enumerate() {
        let grad = grad.skip(i * REPLACED);
        add_at_b(precision, to_weight, shape, x.len() / cols, View::rows(x, cols), grad);
        a_bt(precision, x, shape, grad, weight);
    }
}
