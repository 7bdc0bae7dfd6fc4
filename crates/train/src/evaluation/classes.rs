//! Scores of each class, and which classes are taken for which.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use serde::{Deserialize, Serialize};

/// Most pairs of classes that are kept: all of them for up to 45 classes.
const MOST_PAIRS: usize = 2000;
/// Most classes of which every pair has a counter in a table, of 80 kB.
const MOST_DENSE: usize = 100;
/// Most pairs that are counted among more classes: the first ones that occur.
const MOST_COUNTED: usize = 1 << 16;

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

/// Pairs of true and predicted classes, counted over examples. The counts depend on the order of examples only where
/// there are more pairs than are kept, and on nothing else.
#[derive(Debug, Default)]
pub(crate) struct Confusion {
    classes: Vec<ClassCount>,
    /// The number of examples of each pair, by class and prediction; empty for many classes.
    table: Vec<u64>,
    /// Likewise, of wrong predictions among many classes.
    pairs: HashMap<(u32, u32), u64>,
}

impl Confusion {
    /// Adds an example of `class` that is taken for `predicted`, among `classes`.
    pub fn add(&mut self, classes: usize, class: usize, predicted: usize) {
        if self.classes.is_empty() {
            self.classes.resize(classes, ClassCount::default());
            self.table.resize(if classes <= MOST_DENSE { classes * classes } else { 0 }, 0);
        }
        self.classes[class].support += 1;
        self.classes[predicted].predicted += 1;
        if class == predicted {
            self.classes[class].correct += 1;
        } else if !self.table.is_empty() {
            self.table[class * classes + predicted] += 1;
        } else {
            let pair = (class as u32, predicted as u32);
            let full = self.pairs.len() >= MOST_COUNTED;
            match self.pairs.entry(pair) {
                Entry::Occupied(mut count) => *count.get_mut() += 1,
                Entry::Vacant(_) if full => {}
                Entry::Vacant(new) => _ = new.insert(1),
            }
        }
    }

    /// The counts of all examples, without the name of their split; none of no example.
    pub fn scores(&self) -> Option<ClassScores> {
        let number = self.classes.len();
        if number == 0 {
            return None;
        }
        let cells = self.table.iter().enumerate().filter(|&(_, &count)| count > 0);
        let dense = cells.map(|(at, &count)| ((at / number) as u32, (at % number) as u32, count));
        let sparse =
            self.pairs.iter().map(|(&(class, predicted), &count)| (class, predicted, count));
        let mut confused: Vec<_> = dense.chain(sparse).collect();
        confused.sort_unstable_by_key(|&(class, predicted, count)| {
            (std::cmp::Reverse(count), class, predicted)
        });
        confused.truncate(MOST_PAIRS);
        Some(ClassScores { split: String::new(), classes: self.classes.clone(), confused })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_table_by_hand() {
        let mut all = Confusion::default();
        assert_eq!(all.scores(), None);
        for (class, predicted) in [(0, 0), (0, 1), (1, 1), (2, 2), (2, 0), (2, 0)] {
            all.add(3, class, predicted);
        }
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

    #[test]
    fn many_classes_have_all_counts_and_a_bounded_number_of_pairs() {
        let classes = 600;
        let mut all = Confusion::default();
        // Every pair once, then the first one again.
        (0..classes * classes).for_each(|i| all.add(classes, i / classes, i % classes));
        all.add(classes, 0, 1);
        assert_eq!((all.pairs.len(), all.table.len()), (MOST_COUNTED, 0));
        let found = all.scores().unwrap();
        assert!(found.classes[1..].iter().all(|class| class.support == classes as u64));
        assert!(found.classes.iter().all(|class| class.correct == 1));
        assert_eq!((found.confused.len(), found.confused[0]), (MOST_PAIRS, (0, 1, 2)));
    }
}
