//! Scores of each class, and which classes are taken for which.

use gnarl_nn::Tensor;
use gnarl_nn::metrics::argmax;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// Most pairs of classes that are kept: all of them for up to 45 classes.
const MOST_PAIRS: usize = 2000;

/// Counts of the examples of each class, from which its scores follow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassScores {
    /// `"test"`, or `"valid"` if no test example was scored.
    pub split: String,
    /// Each class.
    pub classes: Vec<ClassCount>,
    /// The most confused pairs: a class, the class that its examples were taken for, and the number of examples; the most
    /// frequent first.
    pub confused: Vec<(u32, u32, u64)>,
}

/// Examples of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCount {
    /// Examples of the class.
    pub support: u64,
    /// Examples that were taken for it.
    pub predicted: u64,
    /// Examples of the class that were taken for it.
    pub correct: u64,
}

impl ClassCount {
    /// Share of the examples taken for the class that are of it; none if none was.
    pub fn precision(&self) -> Option<f64> {
        share(self.correct, self.predicted)
    }

    /// Share of the examples of the class that were taken for it; none if there are none.
    pub fn recall(&self) -> Option<f64> {
        share(self.correct, self.support)
    }

    /// The harmonic mean of precision and recall; none if no example is of the class or was taken for it.
    pub fn f1(&self) -> Option<f64> {
        share(2 * self.correct, self.support + self.predicted)
    }
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

/// Pairs of true and predicted classes, counted over examples.
#[derive(Debug, Default)]
pub(crate) struct Confusion {
    classes: usize,
    pairs: HashMap<(u32, u32), u64>,
}

impl Confusion {
    /// Adds examples: row `rows[i]` of `predictions` belongs to class `classes[i]`.
    pub fn add(&mut self, predictions: &Tensor, rows: &[u32], classes: &[u32]) {
        self.classes = predictions.cols();
        for (&row, &class) in rows.iter().zip(classes) {
            let predicted = argmax(predictions.row(row as usize)) as u32;
            *self.pairs.entry((class, predicted)).or_default() += 1;
        }
    }

    /// The counts of all examples, without the name of their split; none of no example.
    pub fn scores(&self) -> Option<ClassScores> {
        if self.pairs.is_empty() {
            return None;
        }
        let mut classes = vec![ClassCount::default(); self.classes];
        let mut confused = Vec::new();
        for (&(class, predicted), &count) in &self.pairs {
            if let Some(of) = classes.get_mut(class as usize) {
                of.support += count;
                of.correct += if class == predicted { count } else { 0 };
            }
            if let Some(of) = classes.get_mut(predicted as usize) {
                of.predicted += count;
            }
            if class != predicted {
                confused.push((class, predicted, count));
            }
        }
        confused.sort_unstable_by_key(|&(class, predicted, count)| {
            (std::cmp::Reverse(count), class, predicted)
        });
        confused.truncate(MOST_PAIRS);
        Some(ClassScores { split: String::new(), classes, confused })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_table_by_hand() {
        // True classes 0 0 1 2 2 2, taken for 0 1 1 2 0 0, in two batches.
        let logits = |taken: &[usize]| {
            let row = |&class: &usize| (0..3).map(move |c| f32::from(u8::from(c == class)));
            Tensor::from_vec(taken.len(), 3, taken.iter().flat_map(row).collect())
        };
        let mut all = Confusion::default();
        assert_eq!(all.scores(), None);
        all.add(&logits(&[1, 0]), &[1, 0], &[0, 0]);
        all.add(&logits(&[1, 2, 0, 0]), &[0, 1, 2, 3], &[1, 2, 2, 2]);
        let found = all.scores().unwrap();
        let count = |support, predicted, correct| ClassCount { support, predicted, correct };
        assert_eq!(found.classes, [count(2, 3, 1), count(1, 2, 1), count(3, 1, 1)]);
        assert_eq!(found.confused, [(2, 0, 2), (0, 1, 1)]);
        let [zero, ..] = found.classes[..] else { panic!("three classes") };
        assert_eq!(
            (zero.precision(), zero.recall(), zero.f1()),
            (Some(1.0 / 3.0), Some(0.5), Some(0.4))
        );
        assert_eq!((count(0, 0, 0).f1(), count(0, 2, 0).recall()), (None, None));
    }
}
