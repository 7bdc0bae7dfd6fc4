//! Scores, and counts beside them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::data::edge_set::LeakageCount;

/// Metric values by name, for instance `accuracy`.
pub type Scores = BTreeMap<String, f64>;

/// Filtered scores of the test edges of one relation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RelationScores {
    /// Name of the relation, or its number.
    pub relation: String,
    /// Test edges.
    pub edges: usize,
    /// Mean reciprocal rank, over both sides.
    pub mrr: f64,
    /// Share of ranks of 1.
    pub hits_1: f64,
    /// Share of ranks up to 10.
    pub hits_10: f64,
    /// Mean reciprocal rank of heads, and of tails.
    pub sides: [f64; 2],
}

/// Leakage: target edges in the message graph, as counted by the self-check of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeakageReport {
    /// Target edges of training batches, in the blocks of their embeddings.
    pub train: LeakageCount,
    /// Validation edges, among the training edges.
    pub valid: LeakageCount,
    /// Test edges, likewise.
    pub test: LeakageCount,
    /// Interpretation of the figures, in words.
    pub verdict: String,
}

impl LeakageReport {
    /// The report of runs whose edges hear what is before them, by the times that they are sampled as of: nothing is counted.
    pub(crate) fn in_time() -> Self {
        let [train, valid, test] = [LeakageCount::default(); 3];
        let verdict = "no leakage: sample.time reads edges before the one asked about only";
        Self { train, valid, test, verdict: verdict.into() }
    }
}

/// The metric that selects the best weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// Key among the scores.
    pub metric: String,
    /// True if smaller values are better.
    pub smaller_is_better: bool,
}

impl Goal {
    /// Returns whether the new of two values is better. NaN is worse than any number.
    pub fn improves(&self, new: f64, old: f64) -> bool {
        match (new.is_nan(), old.is_nan()) {
            (true, _) => false,
            (false, true) => true,
            (false, false) if self.smaller_is_better => new < old,
            (false, false) => new > old,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_worse_than_any() {
        let goal = |smaller_is_better| Goal { metric: "score".into(), smaller_is_better };
        for goal in [goal(false), goal(true)] {
            assert!(goal.improves(0.1, f64::NAN) && !goal.improves(f64::NAN, 0.1));
            assert!(!goal.improves(f64::NAN, f64::NAN));
        }
        assert!(goal(false).improves(0.2, 0.1) && goal(true).improves(0.1, 0.2));
    }
}
