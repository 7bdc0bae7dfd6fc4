//! The trait of losses, its application to rows of scores, and shared helpers.

use rayon::prelude::*;

use crate::Tensor;

/// A loss of one positive against its negatives.
pub trait Loss: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// The loss of a positive against its negatives, and its derivative by the positive score;
    /// those by negative scores go to `grads`. Negatives of score −∞ are left out: their derivative
    /// is 0.
    fn row(&self, positive: f32, negatives: &[f32], grads: &mut [f32]) -> (f32, f32);
}

/// Positives per task.
const ROWS: usize = 64;

/// The summed loss of positives `n × 1` against their negatives `n × count`, and its gradients.
pub fn apply(loss: &dyn Loss, positive: &Tensor, negative: &Tensor) -> (f64, Tensor, Tensor) {
    let count = negative.cols();
    let mut to_positive = Tensor::scratch(positive.rows(), 1);
    let mut to_negative = Tensor::scratch(negative.rows(), count);
    let rows = to_positive.data_mut().par_chunks_mut(ROWS);
    let sums: Vec<f64> = rows
        .zip(to_negative.data_mut().par_chunks_mut(ROWS * count.max(1)))
        .enumerate()
        .map(|(i, (to_positive, to_negative))| {
            let mut sum = 0.0;
            for (j, to) in to_positive.iter_mut().enumerate() {
                let row = i * ROWS + j;
                let grads = &mut to_negative[j * count..(j + 1) * count];
                let (value, grad) = loss.row(positive.data()[row], negative.row(row), grads);
                sum += f64::from(value);
                *to = grad;
            }
            sum
        })
        .collect();
    (sums.iter().sum(), to_positive, to_negative)
}

/// `log(1 + eˣ)`.
pub(super) fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Number of negatives that are not left out.
pub(super) fn counted(negatives: &[f32]) -> usize {
    negatives.iter().filter(|score| score.is_finite()).count()
}
