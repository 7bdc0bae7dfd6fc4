//! Attention scores of projected rows, one a head.

use rayon::prelude::*;

use crate::kernel::chunks::each_pair;
use crate::{ParamId, Tape, Tensor, Var};

/// Rows per task; each holds a partial gradient of the score vectors.
const ROWS: usize = 1024;

impl Tape<'_> {
    /// `out[i, h] = Σ_f x[i, h·width + f] · a[h, f]`: the part of an attention score that one end
    /// of an edge contributes (Veličković et al., ICLR 2018, eq. 3). `a` is `heads × width`, `x`
    /// has `heads · width` columns.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn head_scores(&mut self, x: Var, a: ParamId) -> Var {
        let params = self.params();
        let (heads, width) = params.shape(a);
        let (rows, cols) = self.shape(x);
        assert_eq!(cols, heads * width, "head_scores of {heads} × {width}");
        let (value, vector) = (self.value(x).clone(), params.get(a));
        let mut y = Tensor::zeros(rows, heads);
        if cols > 0 {
            each_pair((y.data_mut(), ROWS * heads), (value.data(), ROWS * cols), &|out, x| {
                for (i, (out, part)) in out.iter_mut().zip(x.chunks_exact(width)).enumerate() {
                    let a = &vector[i % heads * width..][..width];
                    *out = part.iter().zip(a).map(|(x, a)| x * a).sum();
                }
            });
        }
        self.push(y, true, move |grads, grad| {
            if cols == 0 {
                return;
            }
            for sum in vector_grads(&grad, &value, width) {
                grads.param(a).iter_mut().zip(&sum).for_each(|(o, s)| *o += s);
            }
            if grads.wants(x) {
                let mut to_x = Tensor::scratch(rows, cols);
                let scores = (grad.data(), ROWS * heads);
                each_pair((to_x.data_mut(), ROWS * cols), scores, &|out, grad| {
                    for (i, (part, g)) in out.chunks_exact_mut(width).zip(grad).enumerate() {
                        let a = &vector[i % heads * width..][..width];
                        part.iter_mut().zip(a).for_each(|(o, a)| *o = g * a);
                    }
                });
                grads.add(x, to_x);
            }
        })
    }
}

/// Partial gradients of the score vectors, one per fixed range of rows, in order.
fn vector_grads(grad: &Tensor, x: &Tensor, width: usize) -> Vec<Vec<f32>> {
    let (heads, cols) = (grad.cols(), x.cols());
    let chunks = grad.data().par_chunks(ROWS * heads);
    chunks
        .zip(x.data().par_chunks(ROWS * cols))
        .map(|(grad, x)| {
            let mut sum = vec![0.0; cols];
            for (row, grad) in x.chunks_exact(cols).zip(grad.chunks_exact(heads)) {
                for ((sum, part), g) in
                    sum.chunks_exact_mut(width).zip(row.chunks_exact(width)).zip(grad)
                {
                    sum.iter_mut().zip(part).for_each(|(s, v)| *s += g * v);
                }
            }
            sum
        })
        .collect()
}
