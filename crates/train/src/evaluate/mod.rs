//! Evaluation by full neighbours: the model layer by layer over all nodes, no sampling.

mod divided;
mod held;
mod judge;

use std::collections::BTreeMap;

use gnarl_engine::Communicator;
use gnarl_graph::{Error, Kind, Result};
use gnarl_nn::Params;
use gnarl_nn::models::Model;
use serde::{Deserialize, Serialize};

pub use divided::evaluate_divided;
pub use held::logits;
pub use judge::Judge;

use crate::json;
use crate::links::{LeakageReport, RelationScores};
use crate::strategy::{Threads, pool};
use crate::task::TaskGraph;

/// Metric values by name, for instance `accuracy`.
pub type Scores = BTreeMap<String, f64>;

/// Nodes that a layer runs over at a time where a graph is too large for one block.
const RANGE_NODES: usize = 1 << 14;

/// Validation and test scores of a model over the given graphs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Scores over the validation nodes; empty if there are none.
    #[serde(deserialize_with = "json::floats")]
    pub valid: Scores,
    /// Mean loss over the validation nodes, which decides between equal scores.
    #[serde(deserialize_with = "json::float")]
    pub valid_loss: f64,
    /// Scores over the test nodes; empty if there are none.
    #[serde(deserialize_with = "json::floats")]
    pub test: Scores,
    /// Test scores of each relation, in link prediction.
    pub relations: Vec<RelationScores>,
    /// What could be seen of what was to be found, if it was looked for.
    pub leakage: Option<LeakageReport>,
}

impl Evaluation {
    pub(crate) fn of(valid: &Judge, test: &Judge) -> Self {
        let (valid_loss, test) = (valid.loss(), test.scores());
        Self { valid: valid.scores(), valid_loss, test, ..Self::default() }
    }
}

/// The evaluation that `judge` makes on the first rank, with the threads of its host; all return the same.
///
/// # Errors
/// Those of `judge`, or if a rank fails.
pub(crate) fn by_first(
    rank: &dyn Communicator,
    threads: Threads,
    judge: impl FnOnce() -> Result<Evaluation> + Send,
) -> Result<Evaluation> {
    let mut bytes = Vec::new();
    if rank.rank() == 0 {
        let found = pool(threads.host)?.install(judge)?;
        bytes = serde_json::to_vec(&found).unwrap_or_default();
    }
    let all = rank.all_gather("evaluation", &bytes)?;
    serde_json::from_slice(&all[0])
        .map_err(|e| Error::new(Kind::Rank, format!("rank 0 sent no evaluation: {e}")))
}

/// Judges `params` on all `graphs` together (one whole graph, or the parts of one).
///
/// # Errors
/// If shapes disagree or the metric is unknown.
pub fn evaluate<'a>(
    model: &dyn Model,
    params: &Params,
    graphs: impl IntoIterator<Item = &'a TaskGraph>,
    metric: &str,
) -> Result<Evaluation> {
    let (mut valid, mut test) = (Judge::new(metric)?, Judge::new(metric)?);
    for task in graphs {
        let logits = logits(model, params, task)?;
        valid.add(&task.labels, &logits, &task.valid, &task.valid);
        test.add(&task.labels, &logits, &task.test, &task.test);
    }
    Ok(Evaluation::of(&valid, &test))
}
