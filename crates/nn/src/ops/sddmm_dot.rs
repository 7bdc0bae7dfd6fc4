//! Attention scores as dot products of the endpoints of an edge, one per head.

use super::edge::by_destination;
use super::heads::{self, Shape};
use crate::{Lists, Tape, Tensor, Var};

impl<'b> Tape<'b> {
    /// `out[e, h] = x[source of e, h] · q[list of e, h]`: `x` has one row a source and `q` one a list,
    /// both made of `heads` equally wide parts. Rows without columns may have none.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn sddmm_dot(&mut self, lists: &'b impl Lists, x: Var, q: Var, heads: usize) -> Var {
        let cols = self.shape(x).1;
        assert!(cols.is_multiple_of(heads), "sddmm_dot: {cols} columns, {heads} heads");
        let width = cols.checked_div(heads).unwrap_or(0);
        let shape = Shape { heads, width, step: width };
        self.dots(lists, x, q, shape)
    }

    /// Like [`Tape::sddmm_dot`] with one `x` for all heads: `out[e, h] = x[source of e] · q[list of
    /// e, h]`, the parts of `q` being as wide as `x`.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn sddmm_dot_heads(&mut self, lists: &'b impl Lists, x: Var, q: Var, heads: usize) -> Var {
        let shape = Shape { heads, width: self.shape(x).1, step: 0 };
        self.dots(lists, x, q, shape)
    }

    fn dots(&mut self, lists: &'b impl Lists, x: Var, q: Var, shape: Shape) -> Var {
        assert_eq!(self.shape(x).0, lists.num_src(), "sddmm_dot: one row a source");
        let expected = (lists.num_dst(), shape.heads * shape.width);
        assert_eq!(self.shape(q), expected, "sddmm_dot: one row a list");
        let (left, right) = (self.value(x).clone(), self.value(q).clone());
        let mut y = Tensor::scratch(lists.num_edges(), shape.heads);
        by_destination(y.data_mut(), lists, shape.heads, |first, last, out| {
            heads::weight_chunk(out, (first, last), lists, &left, &right, shape);
        });
        self.push(y, self.needs_grad(x) || self.needs_grad(q), move |grads, grad| {
            if grads.wants(q) {
                grads.add(q, heads::forward(lists, &left, &grad, shape));
            }
            if grads.wants(x) {
                grads.add(x, heads::to_sources(lists, &right, &grad, left.shape(), shape));
            }
        })
    }
}
