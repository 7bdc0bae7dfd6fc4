//! The result of an evaluation.

use serde::{Deserialize, Serialize};

use super::classes::ClassScores;
use super::scores::{LeakageReport, RelationScores, Scores};
use crate::json;
use crate::task::objective::{Objective, Scorer};

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
    /// Scores over the training nodes, if they are asked for.
    #[serde(default, deserialize_with = "json::floats", skip_serializing_if = "Scores::is_empty")]
    pub train: Scores,
    /// Test scores of each relation, in link prediction.
    pub relations: Vec<RelationScores>,
    /// Counts of each class, where an example has one: of test examples, or else of validation examples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<ClassScores>,
    /// Leakage of validation and test edges, if it was checked.
    pub leakage: Option<LeakageReport>,
}

impl Evaluation {
    /// The evaluation of validation, test and training examples.
    pub(crate) fn of([valid, test, train]: &[Box<dyn Scorer + '_>; 3]) -> Self {
        Self {
            valid: valid.scores(),
            valid_loss: valid.loss(),
            test: test.scores(),
            train: train.scores(),
            classes: classes(valid.classes(), test.classes()),
            ..Self::default()
        }
    }
}

/// Scorers of validation, test and training examples. Classes are counted in the split that is reported: test examples if
/// any is scored (`tested`), or else validation examples.
pub(crate) fn scorers(objective: &dyn Objective, tested: bool) -> [Box<dyn Scorer + '_>; 3] {
    let mut splits = [(); 3].map(|()| objective.scorer());
    splits[usize::from(tested)].count_classes();
    splits
}

/// Counts of the test examples, or of the validation examples if there are none.
pub(crate) fn classes(
    valid: Option<ClassScores>,
    test: Option<ClassScores>,
) -> Option<ClassScores> {
    let named = |split: &str, found: ClassScores| ClassScores { split: split.into(), ..found };
    let test = test.map(|found| named("test", found));
    test.or_else(|| valid.map(|found| named("valid", found)))
}
