//! The result of an evaluation.

use serde::{Deserialize, Serialize};

use super::scores::{LeakageReport, RelationScores, Scores};
use crate::json;
use crate::task::objective::Scorer;

/// Validation and test scores of a model over the given graphs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Scores over the validation nodes; empty if there are none.
    #[serde(deserialize_with = "json::floats")]
    pub valid: Scores,
    /// Mean loss over the validation nodes, which breaks ties of scores.
    #[serde(deserialize_with = "json::float")]
    pub valid_loss: f64,
    /// Scores over the test nodes; empty if there are none.
    #[serde(deserialize_with = "json::floats")]
    pub test: Scores,
    /// Test scores of each relation, in link prediction.
    pub relations: Vec<RelationScores>,
    /// Leakage of validation and test edges, if it was checked.
    pub leakage: Option<LeakageReport>,
}

impl Evaluation {
    pub(crate) fn of(valid: &dyn Scorer, test: &dyn Scorer) -> Self {
        let (valid_loss, test) = (valid.loss(), test.scores());
        Self { valid: valid.scores(), valid_loss, test, ..Self::default() }
    }
}
