//! Area under the ROC curve.

use super::metric::{Metric, Targets, row_of};

/// ROC-AUC as the Mann–Whitney statistic: the chance that a positive scores above a negative,
/// ties counting half. One class of two a row: the second class is the positive one. More
/// classes, or several labels a row: the mean over the classes that have both positives and
/// negatives (one against the rest, scores being log-probabilities; as OGB does for labels).
#[derive(Debug, Default, Clone)]
pub struct RocAuc {
    /// One word per evaluated pair of row and class: see [`pack`].
    entries: Vec<Vec<u64>>,
}

/// A word whose order is the order of scores; the lowest bit is the label.
fn pack(score: f32, positive: bool) -> u64 {
    let score = if score == 0.0 { 0.0 } else { score };
    let bits = score.to_bits();
    let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    u64::from(ordered) << 1 | u64::from(positive)
}

/// `log softmax(row)[class]`.
fn log_probability(row: &[f32], class: usize) -> f32 {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|&x| f64::from(x - max).exp()).sum();
    (f64::from(row[class] - max) - sum.ln()) as f32
}

impl RocAuc {
    /// The entries of each class; the lowest bit is the label, the others order them by score.
    pub(super) fn entries(&self) -> &[Vec<u64>] {
        &self.entries
    }

    fn push(&mut self, class: usize, score: f32, positive: bool) {
        if self.entries.len() <= class {
            self.entries.resize(class + 1, Vec::new());
        }
        self.entries[class].push(pack(score, positive));
    }
}

/// The statistic of one class, or `None` without both kinds.
fn area(entries: &[u64]) -> Option<f64> {
    let mut sorted = entries.to_vec();
    sorted.sort_unstable();
    let mut below = 0u64;
    let mut positives = 0u64;
    let mut doubled = 0u128;
    for tie in sorted.chunk_by(|a, b| a >> 1 == b >> 1) {
        let up = tie.iter().map(|w| w & 1).sum::<u64>();
        let down = tie.len() as u64 - up;
        doubled += u128::from(up) * u128::from(2 * below + down);
        below += down;
        positives += up;
    }
    let pairs = u128::from(positives) * u128::from(below);
    (pairs > 0).then(|| doubled as f64 / (2 * pairs) as f64)
}

impl Metric for RocAuc {
    fn name(&self) -> &'static str {
        "roc-auc"
    }

    fn update(&mut self, logits: &[f32], num_classes: usize, rows: &[u32], targets: Targets<'_>) {
        for (i, &row) in rows.iter().enumerate() {
            let row = row_of(logits, num_classes, row);
            match targets {
                Targets::Classes(classes) if num_classes == 2 => {
                    self.push(0, row[1] - row[0], classes[i] == 1);
                }
                Targets::Classes(classes) => {
                    for class in 0..num_classes {
                        self.push(class, log_probability(row, class), classes[i] as usize == class);
                    }
                }
                Targets::Multi(labels) => {
                    for (class, &score) in row.iter().enumerate() {
                        self.push(class, score, labels[i * num_classes + class] != 0);
                    }
                }
                Targets::Values(_) => {}
            }
        }
    }

    /// For each class the number of its entries, then the entries.
    /// A word, in an array that grew to twice as much, and a sorted copy.
    fn bytes_per_value(&self) -> usize {
        3 * size_of::<u64>()
    }

    fn state(&self) -> Vec<u64> {
        let mut words = Vec::new();
        for entries in &self.entries {
            words.push(entries.len() as u64);
            words.extend_from_slice(entries);
        }
        words
    }

    fn merge(&mut self, mut state: &[u64]) {
        let mut class = 0;
        while let Some((&len, rest)) = state.split_first() {
            let (entries, tail) = rest.split_at((len as usize).min(rest.len()));
            if self.entries.len() <= class {
                self.entries.resize(class + 1, Vec::new());
            }
            self.entries[class].extend_from_slice(entries);
            state = tail;
            class += 1;
        }
    }

    fn value(&self) -> f64 {
        let areas: Vec<f64> = self.entries.iter().filter_map(|e| area(e)).collect();
        areas.iter().sum::<f64>() / areas.len().max(1) as f64
    }
}
