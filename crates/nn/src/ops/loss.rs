//! Losses over chosen rows of the logits.

use std::ops::Range;

use rayon::prelude::*;

use crate::kernel::{elementwise, math, multiversion};
use crate::{Tape, Tensor, Var};

/// Chosen rows per task.
const ROWS: usize = 1024;

impl Tape<'_> {
    /// Softmax cross-entropy: `Σᵢ weights[i] · -log softmax(logits[rows[i]])[labels[i]] /
    /// denominator`, a 1 × 1 value. A fixed denominator (the batch's size over all ranks) makes
    /// gradients of parts of a batch add up to that of the whole.
    ///
    /// # Panics
    /// If lengths differ, a row is out of range, or a label is not below the number of columns:
    /// datasets are checked where they are read.
    pub fn cross_entropy(
        &mut self,
        logits: Var,
        rows: &[u32],
        labels: &[u32],
        weights: Option<&[f32]>,
        denominator: f32,
    ) -> Var {
        assert_eq!(rows.len(), labels.len(), "one label a row");
        assert!(weights.is_none_or(|w| w.len() == rows.len()), "one weight a row");
        self.rows_loss(logits, rows, |i, x, out| {
            let (weight, label) = (weights.map_or(1.0, |w| w[i]) / denominator, labels[i] as usize);
            let mut log_sum = 0.0;
            softmax(out, x, &mut log_sum);
            out[label] -= 1.0;
            out.iter_mut().for_each(|v| *v *= weight);
            f64::from(weight * (log_sum - x[label]))
        })
    }

    /// Binary cross-entropy of each column against `targets` in [0, 1] (`rows.len()` rows as
    /// wide as the logits): `Σᵢ weights[i] · Σ_c loss / (denominator · columns)`, 1 × 1.
    ///
    /// # Panics
    /// If lengths differ or a row is out of range.
    pub fn bce_with_logits(
        &mut self,
        logits: Var,
        rows: &[u32],
        targets: &[f32],
        weights: Option<&[f32]>,
        denominator: f32,
    ) -> Var {
        let classes = self.shape(logits).1;
        assert_eq!(rows.len() * classes, targets.len(), "one target a column");
        assert!(weights.is_none_or(|w| w.len() == rows.len()), "one weight a row");
        self.rows_loss(logits, rows, |i, x, out| {
            let weight = weights.map_or(1.0, |w| w[i]) / (denominator * classes as f32);
            let mut sum = 0.0f32;
            for ((o, &x), &t) in out.iter_mut().zip(x).zip(&targets[i * classes..]) {
                sum += x.max(0.0) - x * t + (-x.abs()).exp().ln_1p();
                *o = weight * (math::sigmoid(x) - t);
            }
            f64::from(weight * sum)
        })
    }

    /// The loss of predicted numbers, a single column: `Σᵢ f(predicted[rows[i]] - targets[i]) /
    /// denominator`, 1 × 1. `of` gives the value of `f` and its derivative.
    ///
    /// # Panics
    /// If lengths differ, a row is out of range, or there are several columns.
    pub fn deviation_loss(
        &mut self,
        predicted: Var,
        rows: &[u32],
        targets: &[f32],
        weights: Option<&[f32]>,
        of: impl Fn(f32) -> (f32, f32) + Sync,
        denominator: f32,
    ) -> Var {
        assert_eq!(self.shape(predicted).1, 1, "one number a row");
        assert_eq!(rows.len(), targets.len(), "one target a row");
        assert!(weights.is_none_or(|w| w.len() == rows.len()), "one weight a row");
        self.rows_loss(predicted, rows, |i, x, out| {
            let (loss, derivative) = of(x[0] - targets[i]);
            let weight = weights.map_or(1.0, |w| w[i]) / denominator;
            out[0] = derivative * weight;
            f64::from(loss * weight)
        })
    }

    /// The sum of losses of chosen rows, each a function of its own logits. `of` takes the position
    /// of a row among `rows` and its logits; it writes their derivatives and returns the loss.
    pub fn rows_loss(
        &mut self,
        logits: Var,
        rows: &[u32],
        of: impl Fn(usize, &[f32], &mut [f32]) -> f64 + Sync,
    ) -> Var {
        let value = self.value(logits);
        let (all, classes) = value.shape();
        let in_place = rows.windows(2).all(|pair| pair[0] < pair[1]);
        let (loss, slope) =
            if in_place { all_slopes(value, rows, of) } else { slopes(value, rows, of) };
        let rows = if self.is_training() && !in_place { rows.to_vec() } else { Vec::new() };
        let loss = Tensor::from_vec(1, 1, vec![loss as f32]);
        self.push(loss, self.needs_grad(logits), move |grads, grad| {
            let by = grad.data()[0];
            let mut to_logits = if in_place { slope } else { spread(&slope, &rows, all, classes) };
            if by != 1.0 {
                elementwise::each(to_logits.data_mut(), |g| g.iter_mut().for_each(|g| *g *= by));
            }
            grads.add(logits, to_logits);
        })
    }
}

/// The loss and the derivatives of rows in any order, which may repeat.
fn slopes(
    value: &Tensor,
    rows: &[u32],
    of: impl Fn(usize, &[f32], &mut [f32]) -> f64 + Sync,
) -> (f64, Tensor) {
    let classes = value.cols();
    let mut slope = Tensor::scratch(rows.len(), classes);
    let chunks = slope.data_mut().par_chunks_mut(ROWS * classes.max(1)).zip(rows.par_chunks(ROWS));
    let losses = chunks.enumerate().map(|(chunk, (out, rows))| {
        let each = out.chunks_exact_mut(classes.max(1)).zip(rows).enumerate();
        each.map(|(i, (out, &r))| of(chunk * ROWS + i, value.row(r as usize), out)).sum()
    });
    (losses.collect::<Vec<f64>>().iter().sum(), slope)
}

/// Scatters derivatives to their rows, with addition.
fn spread(slope: &Tensor, rows: &[u32], all: usize, classes: usize) -> Tensor {
    let mut out = Tensor::zeros(all, classes);
    for (i, &r) in rows.iter().enumerate() {
        let out = &mut out.data_mut()[r as usize * classes..(r as usize + 1) * classes];
        out.iter_mut().zip(slope.row(i)).for_each(|(o, s)| *o += s);
    }
    out
}

/// The loss and the derivatives of all rows, 0 outside of `rows`, which ascend.
fn all_slopes(
    value: &Tensor,
    rows: &[u32],
    of: impl Fn(usize, &[f32], &mut [f32]) -> f64 + Sync,
) -> (f64, Tensor) {
    let (all, classes) = value.shape();
    let mut slope = Tensor::scratch(all, classes);
    let mut rest = slope.data_mut();
    let mut tasks: Vec<(&mut [f32], usize, Range<usize>)> = Vec::new();
    let mut first = 0;
    for start in (0..rows.len().max(1)).step_by(ROWS) {
        let end = rows.len().min(start + ROWS);
        let next = rows.get(end).map_or(all, |&row| row as usize);
        let (own, others) = std::mem::take(&mut rest).split_at_mut((next - first) * classes);
        tasks.push((own, first, start..end));
        (rest, first) = (others, next);
    }
    let losses = tasks.into_par_iter().map(|(out, first, entries)| {
        out.fill(0.0);
        let each = entries.map(|i| {
            let at = (rows[i] as usize - first) * classes;
            of(i, value.row(rows[i] as usize), &mut out[at..at + classes])
        });
        each.sum()
    });
    (losses.collect::<Vec<f64>>().iter().sum(), slope)
}

multiversion! {
    /// Writes the softmax of `x` to `out`, and the logarithm of the sum of the exponentials of `x`.
    fn softmax(out: &mut [f32], x: &[f32], log_sum: &mut f32) {
        let largest = x.iter().fold(f32::NEG_INFINITY, |m, &v| m.max(v));
        for (o, v) in out.iter_mut().zip(x) {
            *o = math::exp(v - largest);
        }
        let sum: f32 = out.iter().sum();
        out.iter_mut().for_each(|o| *o /= sum);
        *log_sum = largest + sum.ln();
    }
}
