//! Losses over chosen rows of the logits.

use crate::kernel::math;
use crate::{Tape, Tensor, Var};

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
        let classes = self.shape(logits).1;
        assert_eq!(rows.len(), labels.len(), "one label a row");
        assert!(weights.is_none_or(|w| w.len() == rows.len()), "one weight a row");
        let value = self.value(logits);
        let mut slope = Tensor::scratch(rows.len(), classes);
        let mut loss = 0.0f64;
        for (i, (&r, &label)) in rows.iter().zip(labels).enumerate() {
            let weight = weights.map_or(1.0, |w| w[i]) / denominator;
            let out = &mut slope.data_mut()[i * classes..(i + 1) * classes];
            let log_p = softmax(out, value.row(r as usize), label as usize);
            loss -= (weight * log_p) as f64;
            out[label as usize] -= 1.0;
            out.iter_mut().for_each(|v| *v *= weight);
        }
        self.push_loss(logits, rows, loss as f32, slope)
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
        let value = self.value(logits);
        let mut slope = Tensor::scratch(rows.len(), classes);
        let mut loss = 0.0f64;
        for (i, &r) in rows.iter().enumerate() {
            let weight = weights.map_or(1.0, |w| w[i]) / (denominator * classes as f32);
            let range = i * classes..(i + 1) * classes;
            let out = &mut slope.data_mut()[range.clone()];
            let mut sum = 0.0f32;
            for ((o, &x), &t) in out.iter_mut().zip(value.row(r as usize)).zip(&targets[range]) {
                sum += x.max(0.0) - x * t + (-x.abs()).exp().ln_1p();
                *o = weight * (math::sigmoid(x) - t);
            }
            loss += (weight * sum) as f64;
        }
        self.push_loss(logits, rows, loss as f32, slope)
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
        of: impl Fn(f32) -> (f32, f32),
        denominator: f32,
    ) -> Var {
        assert_eq!(self.shape(predicted).1, 1, "one number a row");
        assert_eq!(rows.len(), targets.len(), "one target a row");
        let value = self.value(predicted);
        let mut slope = Tensor::scratch(rows.len(), 1);
        let mut loss = 0.0f64;
        for ((out, &r), target) in slope.data_mut().iter_mut().zip(rows).zip(targets) {
            let (cost, derivative) = of(value.row(r as usize)[0] - target);
            loss += f64::from(cost / denominator);
            *out = derivative / denominator;
        }
        self.push_loss(predicted, rows, loss as f32, slope)
    }

    /// Records a loss whose gradient with respect to the chosen rows is `slope`.
    fn push_loss(&mut self, logits: Var, rows: &[u32], loss: f32, slope: Tensor) -> Var {
        let (all, classes) = self.shape(logits);
        let rows = if self.is_training() { rows.to_vec() } else { Vec::new() };
        let loss = Tensor::from_vec(1, 1, vec![loss]);
        self.push(loss, self.needs_grad(logits), move |grads, grad| {
            let by = grad.data()[0];
            let mut to_logits = Tensor::zeros(all, classes);
            let out = to_logits.data_mut();
            for (i, &r) in rows.iter().enumerate() {
                let out = &mut out[r as usize * classes..(r as usize + 1) * classes];
                out.iter_mut().zip(slope.row(i)).for_each(|(o, s)| *o += by * s);
            }
            grads.add(logits, to_logits);
        })
    }
}

/// Writes the softmax of `x` to `out` and returns the logarithm of its value at `label`.
fn softmax(out: &mut [f32], x: &[f32], label: usize) -> f32 {
    let largest = x.iter().fold(f32::NEG_INFINITY, |m, &v| m.max(v));
    for (o, v) in out.iter_mut().zip(x) {
        *o = math::exp(v - largest);
    }
    let sum: f32 = out.iter().sum();
    out.iter_mut().for_each(|o| *o /= sum);
    x[label] - largest - sum.ln()
}
