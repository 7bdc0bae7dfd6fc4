//! Node ranking as ordinal regression: levels in order, of which a node's is to be placed (Frank and Hall, ECML 2001).

use gnarl::graph::Labels;
use gnarl::nn::{Tape, Tensor, Var};
use gnarl::train::{Objective, Scorer, Scores, Targets};
use gnarl::{Error, Result};

/// Ranks nodes by levels 0 to `levels - 1`, the classes of the dataset. Column `k` of the predictions is the logit of
/// a level above `k`.
pub struct Ranking {
    levels: usize,
}

impl Ranking {
    /// The task for such labels.
    ///
    /// # Errors
    /// If they are no classes, or there is one class only.
    pub fn new(labels: &Labels) -> Result<Self> {
        match labels {
            Labels::Single { count, .. } if *count > 1 => Ok(Self { levels: *count }),
            _ => Err(Error::usage("node ranking needs levels, as classes from 0")),
        }
    }

    /// The bits of a level: 1 for each lower one.
    fn bits(&self, levels: &[u32]) -> Vec<f32> {
        let bits = |&level: &u32| (1..self.levels).map(move |k| f32::from(k as u32 <= level));
        levels.iter().flat_map(bits).collect()
    }
}

impl Objective for Ranking {
    fn outputs(&self, _: &Labels) -> Result<usize> {
        Ok(self.levels - 1)
    }

    fn metric(&self) -> &str {
        "spearman"
    }

    fn loss(
        &self,
        tape: &mut Tape<'_>,
        predictions: Var,
        rows: &[u32],
        targets: &Targets,
        weights: Option<&[f32]>,
    ) -> Var {
        let Targets::Classes(levels) = targets else { unreachable!("checked by Ranking::new") };
        tape.bce_with_logits(predictions, rows, &self.bits(levels), weights, 1.0)
    }

    fn scorer(&self) -> Box<dyn Scorer + '_> {
        Box::new(RankScorer { task: self, pairs: Vec::new(), loss: 0.0 })
    }
}

/// Spearman's rank correlation of predicted and true levels.
struct RankScorer<'a> {
    task: &'a Ranking,
    /// Expected level and level of each node.
    pairs: Vec<(f64, f64)>,
    loss: f64,
}

impl Scorer for RankScorer<'_> {
    fn add(&mut self, predictions: &Tensor, rows: &[u32], targets: &Targets) {
        let Targets::Classes(levels) = targets else { return };
        let bits = self.task.bits(levels);
        let columns = self.task.levels - 1;
        for ((&row, &level), bits) in rows.iter().zip(levels).zip(bits.chunks(columns)) {
            let logits = predictions.row(row as usize);
            let above = logits.iter().map(|&x| 1.0 / (1.0 + f64::from(-x).exp()));
            self.pairs.push((above.sum(), f64::from(level)));
            let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
            let losses = logits.iter().zip(bits).map(|(&x, &bit)| {
                let x = f64::from(x);
                softplus(x) - x * f64::from(bit)
            });
            self.loss += losses.sum::<f64>() / columns as f64;
        }
    }

    fn scores(&self) -> Scores {
        let (predicted, true_levels): (Vec<f64>, Vec<f64>) = self.pairs.iter().copied().unzip();
        let correlation = correlation(&ranks(&predicted), &ranks(&true_levels));
        let scores = [("spearman".to_string(), correlation)];
        scores.into_iter().filter(|_| !self.pairs.is_empty()).collect()
    }

    fn loss(&self) -> f64 {
        self.loss / self.pairs.len().max(1) as f64
    }
}

/// The rank of each value; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let mean = first as f64 + (equal.len() - 1) as f64 / 2.0;
        equal.iter().for_each(|&place| ranks[place] = mean);
        first += equal.len();
    }
    ranks
}

/// Pearson's correlation; NaN where one side does not vary.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let product = |(x, y): (&f64, &f64)| (x - mean_a) * (y - mean_b);
    let shared: f64 = a.iter().zip(b).map(product).sum();
    let square = |values: &[f64], mean: f64| values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    shared / (square(a, mean_a) * square(b, mean_b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_by_hand() {
        assert_eq!(ranks(&[0.3, 0.1, 0.3, 0.9]), [1.5, 0.0, 1.5, 3.0]);
        let three = [0.0, 1.0, 2.0];
        assert!((correlation(&three, &ranks(&[1.0, 10.0, 100.0])) - 1.0).abs() < 1e-12);
        assert!((correlation(&three, &ranks(&[5.0, 4.0, 1.0])) + 1.0).abs() < 1e-12);
        assert!((correlation(&three, &ranks(&[1.0, 3.0, 2.0])) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_level_is_one_bit_per_lower_level() {
        let task = Ranking { levels: 4 };
        assert_eq!(task.bits(&[0, 2, 3]), [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn other_labels_are_refused() {
        let marks = Labels::Multi { values: vec![0, 1].into(), tasks: 2 };
        assert!(Ranking::new(&marks).is_err());
    }
}
