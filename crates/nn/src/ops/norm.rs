//! Normalization of rows.

use rayon::prelude::*;

use crate::kernel::chunks::each_pair;
use crate::kernel::elementwise::add_chunk;
use crate::{ParamId, Tape, Tensor, Var};

/// Rows per task.
const ROWS: usize = 256;

impl Tape<'_> {
    /// `(x - mean) / √(variance + eps) · gain + shift` over each row (Ba et al., 2016); `gain`
    /// and `shift` are `1 × columns`.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn layer_norm(&mut self, x: Var, gain: ParamId, shift: ParamId, eps: f32) -> Var {
        let ((rows, cols), params) = (self.shape(x), self.params());
        assert_eq!(params.shape(gain), (1, cols), "layer_norm: gain");
        assert_eq!(params.shape(shift), (1, cols), "layer_norm: shift");
        let scale = params.get(gain);
        let offset = params.get(shift);
        let value = self.value(x).clone();
        let mut y = Tensor::scratch(rows, cols);
        each_row(&mut y, &value, |out, x| {
            let (mean, inverse) = moments(x, eps);
            for ((o, v), (s, b)) in out.iter_mut().zip(x).zip(scale.iter().zip(offset)) {
                *o = (v - mean) * inverse * s + b;
            }
        });
        self.push(y, true, move |grads, grad| {
            for (sum, id) in column_grads(&grad, &value, eps).into_iter().zip([gain, shift]) {
                add_chunk(grads.param(id), &sum);
            }
            if !grads.wants(x) {
                return;
            }
            let mut to_x = grad;
            each_row(&mut to_x, &value, |g, x| {
                let (mean, inverse) = moments(x, eps);
                let (mut sum, mut dot) = (0.0, 0.0);
                for ((g, v), s) in g.iter_mut().zip(x).zip(scale) {
                    *g *= s;
                    sum += *g;
                    dot += *g * (v - mean) * inverse;
                }
                let n = cols as f32;
                for (g, v) in g.iter_mut().zip(x) {
                    *g = inverse * (*g - sum / n - (v - mean) * inverse * dot / n);
                }
            });
            grads.add(x, to_x);
        })
    }

    /// Every row divided by its Euclidean length, or by `1e-12` if that is larger.
    pub fn l2_normalize(&mut self, x: Var) -> Var {
        let length = |row: &[f32]| row.iter().map(|v| v * v).sum::<f32>().sqrt();
        let value = self.value(x).clone();
        let mut y = Tensor::scratch(value.rows(), value.cols());
        each_row(&mut y, &value, |out, x| {
            let inverse = 1.0 / length(x).max(1e-12);
            out.iter_mut().zip(x).for_each(|(o, v)| *o = v * inverse);
        });
        self.push(y, self.needs_grad(x), move |grads, mut grad| {
            each_row(&mut grad, &value, |g, x| {
                let length = length(x);
                let inverse = 1.0 / length.max(1e-12);
                let dot: f32 = g.iter().zip(x).map(|(g, v)| g * v).sum();
                let along = if length > 1e-12 { dot * inverse * inverse } else { 0.0 };
                g.iter_mut().zip(x).for_each(|(g, v)| *g = inverse * (*g - along * v));
            });
            grads.add(x, grad);
        })
    }

    /// The logarithm of the softmax of each row.
    pub fn log_softmax(&mut self, x: Var) -> Var {
        let value = self.value(x);
        let mut y = Tensor::scratch(value.rows(), value.cols());
        each_row(&mut y, value, |out, x| {
            let largest = x.iter().fold(f32::NEG_INFINITY, |m, &v| m.max(v));
            let log_sum = x.iter().map(|v| (v - largest).exp()).sum::<f32>().ln();
            out.iter_mut().zip(x).for_each(|(o, v)| *o = v - largest - log_sum);
        });
        let saved = y.clone();
        self.push(y, self.needs_grad(x), move |grads, mut grad| {
            each_row(&mut grad, &saved, |g, y| {
                let sum: f32 = g.iter().sum();
                g.iter_mut().zip(y).for_each(|(g, y)| *g -= y.exp() * sum);
            });
            grads.add(x, grad);
        })
    }
}

/// Calls `f` for corresponding rows of `out` and `x`.
fn each_row(out: &mut Tensor, x: &Tensor, f: impl Fn(&mut [f32], &[f32]) + Sync) {
    let cols = x.cols();
    if cols == 0 {
        return;
    }
    each_pair((out.data_mut(), ROWS * cols), (x.data(), ROWS * cols), &|out, x| {
        out.chunks_exact_mut(cols).zip(x.chunks_exact(cols)).for_each(|(out, x)| f(out, x));
    });
}

/// Mean and inverse standard deviation.
fn moments(x: &[f32], eps: f32) -> (f32, f32) {
    let n = x.len() as f32;
    let mean = x.iter().sum::<f32>() / n;
    let variance = x.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / n;
    (mean, 1.0 / (variance + eps).sqrt())
}

/// Gradients of gain and shift, partial sums of fixed chunks added in order.
fn column_grads(grad: &Tensor, x: &Tensor, eps: f32) -> [Vec<f32>; 2] {
    let cols = x.cols().max(1);
    let chunks = grad.data().par_chunks(ROWS * cols).zip(x.data().par_chunks(ROWS * cols));
    let partial: Vec<[Vec<f32>; 2]> = chunks
        .map(|(grad, x)| {
            let mut sums = [vec![0.0; x.len().min(cols)], vec![0.0; x.len().min(cols)]];
            for (grad, x) in grad.chunks_exact(cols).zip(x.chunks_exact(cols)) {
                let (mean, inverse) = moments(x, eps);
                for (c, (g, v)) in grad.iter().zip(x).enumerate() {
                    sums[0][c] += g * (v - mean) * inverse;
                    sums[1][c] += g;
                }
            }
            sums
        })
        .collect();
    let mut total = [vec![0.0; x.cols()], vec![0.0; x.cols()]];
    for sums in &partial {
        total.iter_mut().zip(sums).for_each(|(t, s)| add_chunk(t, s));
    }
    total
}
