//! Sums and products of equally shaped values.

use rayon::prelude::*;

use crate::kernel::elementwise;
use crate::{Tape, Tensor, Var};

/// Values per task.
const CHUNK: usize = 1 << 14;

impl Tape<'_> {
    /// `a + b`.
    ///
    /// # Panics
    /// If the shapes differ.
    pub fn add(&mut self, a: Var, b: Var) -> Var {
        assert_eq!(self.shape(a), self.shape(b), "add");
        let mut sum = self.value(a).clone();
        elementwise::add_assign(sum.data_mut(), self.value(b).data());
        self.push(sum, self.needs_grad(a) || self.needs_grad(b), move |grads, grad| {
            grads.add(a, grad.clone());
            grads.add(b, grad);
        })
    }

    /// `a` with the one row `b` added to each of its rows.
    ///
    /// # Panics
    /// If `b` is not one row as wide as `a`.
    pub fn add_row(&mut self, a: Var, b: Var) -> Var {
        let sum = self.value(a).clone();
        self.row_added(a, sum, b)
    }

    /// As [`Tape::add_row`] for the last use of `a`: reuses its buffer unless it is shared. `a` is
    /// released.
    pub(crate) fn add_row_last(&mut self, a: Var, b: Var) -> Var {
        let sum = self.take(a);
        self.row_added(a, sum, b)
    }

    /// Adds the row `b` to `sum`, the value of `a`.
    fn row_added(&mut self, a: Var, mut sum: Tensor, b: Var) -> Var {
        let cols = sum.cols();
        assert_eq!(self.shape(b), (1, cols), "add_row");
        elementwise::bias_rows(sum.data_mut(), self.value(b).data());
        self.push(sum, self.needs_grad(a) || self.needs_grad(b), move |grads, grad| {
            if grads.wants(b) {
                let mut row = Tensor::zeros(1, cols);
                elementwise::add_column_sums(row.data_mut(), grad.data());
                grads.add(b, row);
            }
            grads.add(a, grad);
        })
    }

    /// `factor * x`.
    pub fn scale(&mut self, x: Var, factor: f32) -> Var {
        let (rows, cols) = self.shape(x);
        let mut y = Tensor::scratch(rows, cols);
        elementwise::scale_into(y.data_mut(), self.value(x).data(), factor);
        self.push(y, self.needs_grad(x), move |grads, mut grad| {
            elementwise::each(grad.data_mut(), |g| g.iter_mut().for_each(|g| *g *= factor));
            grads.add(x, grad);
        })
    }

    /// `factor * x` with a 1 × 1 value, such as GIN's learnable ε.
    ///
    /// # Panics
    /// If `factor` is not 1 × 1.
    pub fn scale_by(&mut self, x: Var, factor: Var) -> Var {
        assert_eq!(self.shape(factor), (1, 1), "scale_by");
        let (saved, by) = (self.value(x).clone(), self.value(factor).data()[0]);
        let mut y = Tensor::scratch(saved.rows(), saved.cols());
        elementwise::scale_into(y.data_mut(), saved.data(), by);
        self.push(y, self.needs_grad(x) || self.needs_grad(factor), move |grads, mut grad| {
            if grads.wants(factor) {
                let dot = elementwise::dot(grad.data(), saved.data());
                grads.add(factor, Tensor::from_vec(1, 1, vec![dot]));
            }
            elementwise::each(grad.data_mut(), |g| g.iter_mut().for_each(|g| *g *= by));
            grads.add(x, grad);
        })
    }

    /// `a * b`, value by value.
    ///
    /// # Panics
    /// If the shapes differ.
    pub fn mul(&mut self, a: Var, b: Var) -> Var {
        assert_eq!(self.shape(a), self.shape(b), "mul");
        let (left, right) = (self.value(a).clone(), self.value(b).clone());
        let mut product = left.clone();
        elementwise::mul_assign(product.data_mut(), right.data());
        self.push(product, self.needs_grad(a) || self.needs_grad(b), move |grads, mut grad| {
            if grads.wants(a) {
                let mut to_a = grad.clone();
                elementwise::mul_assign(to_a.data_mut(), right.data());
                grads.add(a, to_a);
            }
            if grads.wants(b) {
                elementwise::mul_assign(grad.data_mut(), left.data());
                grads.add(b, grad);
            }
        })
    }

    /// The larger of `a` and `b`, value by value; `a` where they are equal.
    ///
    /// # Panics
    /// If the shapes differ.
    pub fn max(&mut self, a: Var, b: Var) -> Var {
        assert_eq!(self.shape(a), self.shape(b), "max");
        let (left, right) = (self.value(a).clone(), self.value(b).clone());
        let mut larger = left.clone();
        elementwise::zip(larger.data_mut(), right.data(), |a, b| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a = a.max(*b));
        });
        self.push(larger, self.needs_grad(a) || self.needs_grad(b), move |grads, grad| {
            let mut to_a = grad.clone();
            let mut to_b = grad;
            let pairs = left.data().par_chunks(CHUNK).zip(right.data().par_chunks(CHUNK));
            let outs = to_a.data_mut().par_chunks_mut(CHUNK);
            let outs = outs.zip(to_b.data_mut().par_chunks_mut(CHUNK));
            outs.zip(pairs).for_each(|((to_a, to_b), (left, right))| {
                let pairs = left.iter().zip(right);
                for ((to_a, to_b), (left, right)) in to_a.iter_mut().zip(to_b).zip(pairs) {
                    *(if left >= right { to_b } else { to_a }) = 0.0;
                }
            });
            grads.add(a, to_a);
            grads.add(b, to_b);
        })
    }
}
