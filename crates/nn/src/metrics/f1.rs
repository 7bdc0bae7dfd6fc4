//! F1 scores from per-class counts.

use super::metric::{Metric, Targets, argmax, row_of};

/// Averaging over classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum F1Average {
    /// One score from the counts of all classes together.
    Micro,
    /// The mean of each class's score, over classes that occur or are predicted.
    Macro,
}

/// F1 = 2 TP / (2 TP + FP + FN).
#[derive(Debug, Clone)]
pub struct F1 {
    average: F1Average,
    /// True positives, false positives and false negatives of each class.
    counts: Vec<[u64; 3]>,
}

impl F1 {
    /// An empty score.
    pub fn new(average: F1Average) -> Self {
        Self { average, counts: Vec::new() }
    }

    fn add(&mut self, class: usize, predicted: bool, actual: bool) {
        match (predicted, actual) {
            (true, true) => self.counts[class][0] += 1,
            (true, false) => self.counts[class][1] += 1,
            (false, true) => self.counts[class][2] += 1,
            (false, false) => {}
        }
    }

    fn grow(&mut self, num_classes: usize) {
        if self.counts.len() < num_classes {
            self.counts.resize(num_classes, [0; 3]);
        }
    }
}

impl Metric for F1 {
    fn name(&self) -> &'static str {
        match self.average {
            F1Average::Micro => "micro-f1",
            F1Average::Macro => "macro-f1",
        }
    }

    fn update(&mut self, logits: &[f32], num_classes: usize, rows: &[u32], targets: Targets<'_>) {
        self.grow(num_classes);
        for (i, &row) in rows.iter().enumerate() {
            let row = row_of(logits, num_classes, row);
            match targets {
                Targets::Classes(classes) => {
                    let (predicted, actual) = (argmax(row), classes[i] as usize);
                    self.add(predicted, true, predicted == actual);
                    if predicted != actual {
                        self.add(actual, false, true);
                    }
                }
                Targets::Multi(labels) => {
                    for (class, &x) in row.iter().enumerate() {
                        self.add(class, x > 0.0, labels[i * num_classes + class] != 0);
                    }
                }
                Targets::Values(_) => {}
            }
        }
    }

    fn state(&self) -> Vec<u64> {
        self.counts.concat()
    }

    fn merge(&mut self, state: &[u64]) {
        self.grow(state.len() / 3);
        for (mine, theirs) in self.counts.iter_mut().zip(state.chunks_exact(3)) {
            mine.iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
        }
    }

    fn value(&self) -> f64 {
        let score = |[tp, fp, fneg]: [u64; 3]| {
            let total = 2 * tp + fp + fneg;
            (total > 0).then(|| 2.0 * tp as f64 / total as f64)
        };
        match self.average {
            F1Average::Micro => {
                let sum =
                    self.counts.iter().fold([0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
                score(sum).unwrap_or(0.0)
            }
            F1Average::Macro => {
                let scores: Vec<f64> = self.counts.iter().copied().filter_map(score).collect();
                scores.iter().sum::<f64>() / scores.len().max(1) as f64
            }
        }
    }
}
