//! Average precision.

use super::{Metric, RocAuc, Targets};

/// Average precision: over falling thresholds, the sum of precision times the growth of recall, as
/// scikit-learn's `average_precision_score`; rows of equal scores are one threshold. The mean over
/// classes that have positives, where there are several; of two classes the second is the positive one.
#[derive(Debug, Default, Clone)]
pub struct AveragePrecision {
    /// The entries, shared with ROC-AUC.
    scores: RocAuc,
}

/// The value of one class, from entries whose lowest bit is the label; `None` without positives.
fn precision(entries: &[u64]) -> Option<f64> {
    let mut sorted = entries.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let all = sorted.iter().filter(|word| *word & 1 == 1).count();
    let mut seen = 0;
    let mut right = 0;
    let mut sum = 0.0;
    for tie in sorted.chunk_by(|a, b| a >> 1 == b >> 1) {
        let more = tie.iter().filter(|word| *word & 1 == 1).count();
        seen += tie.len();
        right += more;
        sum += more as f64 * right as f64 / seen as f64;
    }
    (all > 0).then(|| sum / all as f64)
}

impl Metric for AveragePrecision {
    fn name(&self) -> &'static str {
        "average-precision"
    }

    fn update(&mut self, logits: &[f32], num_classes: usize, rows: &[u32], targets: Targets<'_>) {
        self.scores.update(logits, num_classes, rows, targets);
    }

    /// A word, in an array that grew to twice as much, and a sorted copy.
    fn bytes_per_value(&self) -> usize {
        3 * size_of::<u64>()
    }

    fn state(&self) -> Vec<u64> {
        self.scores.state()
    }

    fn merge(&mut self, state: &[u64]) {
        self.scores.merge(state);
    }

    fn value(&self) -> f64 {
        let each: Vec<f64> = self.scores.entries().iter().filter_map(|e| precision(e)).collect();
        each.iter().sum::<f64>() / each.len().max(1) as f64
    }
}
