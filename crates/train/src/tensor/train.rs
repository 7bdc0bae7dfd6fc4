//! Which learner a run takes.

use gnarl_engine::Communicator;
use gnarl_graph::{Error, Result};
use gnarl_nn::models::Model;

use super::chunks::{ChunkLearner, Means, Plan};
use super::learner::TensorLearner;
use super::share::Share;
use crate::state::TrainState;
use crate::strategy::{Session, gradient};
use crate::task::TaskGraph;

/// Trains `model` by full-graph steps, in chunks where the run file limits memory or asks for them.
///
/// # Errors
/// If the graph lies in parts or is too large for a block, if the model cannot be cut, and those of
/// training.
pub(crate) fn train(
    session: &Session<'_>,
    model: &dyn Model,
    task: &TaskGraph,
    metric: &str,
    rank: &dyn Communicator,
    state: TrainState,
) -> Result<TrainState> {
    let section = &session.config.tensor;
    if section.memory.is_none() && section.chunks == 0 {
        let learner = TensorLearner::new(model, task, metric, rank)?;
        return gradient::train(session, &learner, rank, state);
    }
    let stages = model.stages(task.features.is_sparse()).ok_or_else(|| {
        Error::usage(format!("{} does not train in chunks", model.name()))
            .hint("tensor.memory and tensor.chunks know gcn, sage (mean), gin, sgc, mlp and decoupled gcn")
    })?;
    let block = task.whole_block()?;
    let means = Means {
        model: stages.as_ref(),
        params: &state.params,
        task,
        block: &block,
        rank: (rank.rank(), rank.size()),
        neighbours: session.neighbours,
        dir: session.config.output.dir.clone(),
    };
    let plan = Plan::new(section, &means)?;
    if rank.rank() == 0 {
        tracing::info!("steps in {}", plan.describe());
    }
    let share = Share::new(task, metric, rank, block.num_src());
    let learner = ChunkLearner::new(stages.as_ref(), &block, share, &plan)?;
    gradient::train(session, &learner, rank, state)
}
