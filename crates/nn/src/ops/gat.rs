//! Graph attention (Veličković et al., ICLR 2018, eq. 1–6), arranged for blocks that have many
//! more sources than destinations: raw input rows are summed per head with attention weights, and
//! the sums projected, instead of projecting every source. Scores need no projection either:
//! `(x · W) · a = x · (W · a)`.

use gnarl_graph::blocks::Block;

use super::activation::Activation;
use crate::kernel::chunks::each_pair;
use crate::{EdgeAttention, ParamId, Tape, Tensor, Var};

/// Rows per task.
const ROWS: usize = 1024;

/// The parameters and constants of a graph attention layer.
#[derive(Debug, Clone, Copy)]
pub struct Gat {
    /// Projection, `in × heads·width`.
    pub weight: ParamId,
    /// Scores of sources, `heads × width`.
    pub source: ParamId,
    /// Scores of destinations, `heads × width`.
    pub destination: ParamId,
    /// Bias, `1 × heads·width`.
    pub bias: Option<ParamId>,
    /// Slope of the scores' LeakyReLU below 0.
    pub slope: f32,
    /// Probability that an edge's weight is dropped.
    pub dropout: f32,
}

impl<'b> Tape<'b> {
    /// Multi-head attention over the edges of `block`, heads side by side. `x` is dense with one
    /// row a source. Average the heads with [`Tape::mean_heads`] if the layer is the last.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn gat(&mut self, block: &'b Block, x: Var, layer: Gat, act: Activation) -> Var {
        let to_source = self.score_weights(layer.weight, layer.source);
        let to_destination = self.score_weights(layer.weight, layer.destination);
        let both = self.concat_cols(&[to_source, to_destination]);
        let attention = EdgeAttention { slope: layer.slope, dropout: layer.dropout };
        self.attend_inputs(block, x, both, (layer.weight, layer.bias), (attention, act))
    }

    /// `out[i, h] = Σ_f w[i, h·width + f] · a[h, f]`: the map from input rows to scores, `in ×
    /// heads`, for a projection `w` and score vectors `a`.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn score_weights(&mut self, w: ParamId, a: ParamId) -> Var {
        let params = self.params();
        let ((rows, cols), (heads, width)) = (params.shape(w), params.shape(a));
        assert_eq!(cols, heads * width, "score_weights of {heads} × {width}");
        let (weight, vector) = (params.get(w), params.get(a));
        let mut y = Tensor::zeros(rows, heads);
        for (i, out) in y.data_mut().iter_mut().enumerate() {
            let part = &weight[i * width..(i + 1) * width];
            let a = &vector[i % heads * width..(i % heads + 1) * width];
            *out = part.iter().zip(a).map(|(w, a)| w * a).sum();
        }
        self.push(y, true, move |grads, grad| {
            let to_w = grads.param(w);
            for (i, g) in grad.data().iter().enumerate() {
                let a = &vector[i % heads * width..(i % heads + 1) * width];
                let to_w = &mut to_w[i * width..(i + 1) * width];
                to_w.iter_mut().zip(a).for_each(|(o, a)| *o += g * a);
            }
            let to_a = grads.param(a);
            for (i, g) in grad.data().iter().enumerate() {
                let part = &weight[i * width..(i + 1) * width];
                let to_a = &mut to_a[i % heads * width..(i % heads + 1) * width];
                to_a.iter_mut().zip(part).for_each(|(o, w)| *o += g * w);
            }
        })
    }

    /// The mean of the `heads` equally wide parts of each row.
    ///
    /// # Panics
    /// If the columns do not divide into `heads` parts.
    pub fn mean_heads(&mut self, x: Var, heads: usize) -> Var {
        let (rows, cols) = self.shape(x);
        assert!(heads > 0 && cols % heads == 0, "mean_heads: {cols} columns, {heads} heads");
        let (width, factor) = (cols / heads, 1.0 / heads as f32);
        if width == 0 {
            return self.push(Tensor::scratch(rows, 0), false, |_, _| {});
        }
        let mut y = Tensor::scratch(rows, width);
        let all = (self.value(x).data(), ROWS * cols);
        each_pair((y.data_mut(), ROWS * width), all, &|out, rows| {
            for (out, row) in out.chunks_exact_mut(width).zip(rows.chunks_exact(cols)) {
                out.fill(0.0);
                for part in row.chunks_exact(width) {
                    out.iter_mut().zip(part).for_each(|(o, v)| *o += factor * v);
                }
            }
        });
        self.push(y, self.needs_grad(x), move |grads, grad| {
            let mut to_x = Tensor::scratch(rows, cols);
            let of_rows = (grad.data(), ROWS * width);
            each_pair((to_x.data_mut(), ROWS * cols), of_rows, &|out, rows| {
                for (out, row) in out.chunks_exact_mut(cols).zip(rows.chunks_exact(width)) {
                    for part in out.chunks_exact_mut(width) {
                        part.iter_mut().zip(row).for_each(|(o, g)| *o = factor * g);
                    }
                }
            });
            grads.add(x, to_x);
        })
    }
}
