//! Accuracy.

use super::metric::{Metric, Targets, argmax, row_of};

/// Share of correct predictions. One class a row: the largest logit is the prediction. Several
/// labels a row: every label is one prediction, positive where its logit is above 0.
#[derive(Debug, Default, Clone)]
pub struct Accuracy {
    right: u64,
    total: u64,
}

impl Metric for Accuracy {
    fn name(&self) -> &'static str {
        "accuracy"
    }

    fn update(&mut self, logits: &[f32], num_classes: usize, rows: &[u32], targets: Targets<'_>) {
        for (i, &row) in rows.iter().enumerate() {
            let row = row_of(logits, num_classes, row);
            match targets {
                Targets::Classes(classes) => {
                    self.right += u64::from(argmax(row) == classes[i] as usize);
                    self.total += 1;
                }
                Targets::Multi(labels) => {
                    let labels = &labels[i * num_classes..][..num_classes];
                    let right = row.iter().zip(labels).filter(|&(&x, &y)| (x > 0.0) == (y != 0));
                    self.right += right.count() as u64;
                    self.total += num_classes as u64;
                }
                Targets::Values(_) => {}
            }
        }
    }

    fn state(&self) -> Vec<u64> {
        vec![self.right, self.total]
    }

    fn merge(&mut self, state: &[u64]) {
        if let [right, total] = *state {
            self.right += right;
            self.total += total;
        }
    }

    fn value(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.right as f64 / self.total as f64 }
    }
}
