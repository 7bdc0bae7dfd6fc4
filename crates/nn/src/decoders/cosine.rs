//! The cosine of the angle between head and tail.

use super::{Decoder, Side, Similarity};
use crate::{Params, Tensor};

/// `⟨h, t⟩ / (‖h‖ ‖t‖)`, whatever the relation; an embedding of zeros scores 0.
pub(super) struct Cosine {
    width: usize,
}

impl Cosine {
    pub fn new(width: usize) -> Self {
        Self { width }
    }
}

/// Normalizes each row to length 1.
fn unit(rows: &Tensor) -> Tensor {
    let mut out = rows.clone();
    for row in out.data_mut().chunks_exact_mut(rows.cols()) {
        let scale = inverse_length(row);
        row.iter_mut().for_each(|v| *v *= scale);
    }
    out
}

/// With `u = x / ‖x‖` the gradient of `x` is `(g − ⟨g, u⟩ u) / ‖x‖`.
fn unit_backward(rows: &Tensor, grad: &Tensor) -> Tensor {
    let (mut out, width) = (grad.clone(), rows.cols());
    for (g, x) in out.data_mut().chunks_exact_mut(width).zip(rows.data().chunks_exact(width)) {
        let scale = inverse_length(x);
        let along: f32 = g.iter().zip(x).map(|(g, x)| g * x).sum::<f32>() * scale * scale;
        g.iter_mut().zip(x).for_each(|(g, x)| *g = (*g - along * x) * scale);
    }
    out
}

fn inverse_length(row: &[f32]) -> f32 {
    let square: f32 = row.iter().map(|v| v * v).sum();
    if square > 0.0 { square.sqrt().recip() } else { 0.0 }
}

impl Decoder for Cosine {
    fn name(&self) -> &'static str {
        "cosine"
    }

    fn width(&self) -> usize {
        self.width
    }

    fn relations(&self) -> Option<usize> {
        None
    }

    fn similarity<'a>(&self, _: &'a Params) -> Similarity<'a> {
        Similarity::Product
    }

    fn query(&self, _: &Params, _: Side, given: &Tensor, _: &[u32]) -> Tensor {
        unit(given)
    }

    fn query_backward(
        &self,
        _: &Params,
        _: Side,
        given: &Tensor,
        _: &[u32],
        query_grad: &Tensor,
        _: &mut [f32],
    ) -> Tensor {
        unit_backward(given, query_grad)
    }

    fn candidate(&self, _: &Params, _: Side, rows: &Tensor) -> Tensor {
        unit(rows)
    }

    fn candidate_backward(
        &self,
        _: &Params,
        _: Side,
        rows: &Tensor,
        grad: Tensor,
        _: &mut [f32],
    ) -> Tensor {
        unit_backward(rows, &grad)
    }
}
