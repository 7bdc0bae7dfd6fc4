//! Products of two values.

use crate::kernel::gemm::{Heads, View};
use crate::kernel::products::{a_b, a_bt, add_at_b};
use crate::{Tape, Tensor, Var};

impl Tape<'_> {
    /// The matrix product `a · b`.
    ///
    /// # Panics
    /// If `a` has not as many columns as `b` has rows.
    pub fn matmul(&mut self, a: Var, b: Var) -> Var {
        let ((m, k), (k2, n)) = (self.shape(a), self.shape(b));
        assert_eq!(k, k2, "matmul of {m} × {k} and {k2} × {n}");
        let (left, right) = (self.value(a).clone(), self.value(b).clone());
        let mut y = Tensor::scratch(m, n);
        let (left_rows, right_rows) = (View::rows(left.data(), k), View::rows(right.data(), n));
        let shape = Heads { heads: 1, k, n };
        let precision = self.precision();
        a_b(precision, y.data_mut(), shape, left_rows, right_rows, |_| {});
        self.push(y, self.needs_grad(a) || self.needs_grad(b), move |grads, grad| {
            let out = View::rows(grad.data(), n);
            if grads.wants(a) {
                let mut to_a = Tensor::scratch(m, k);
                a_bt(precision, to_a.data_mut(), shape, out, View::rows(right.data(), n));
                grads.add(a, to_a);
            }
            if grads.wants(b) {
                let mut to_b = Tensor::zeros(k, n);
                let left = View::rows(left.data(), k);
                add_at_b(precision, to_b.data_mut(), shape, m, left, out);
                grads.add(b, to_b);
            }
        })
    }
}
