//! Which learner a run takes.

use std::time::Duration;

use gnarl_engine::{Communicator, local};
use gnarl_graph::{Error, Result};
use gnarl_nn::Params;
use gnarl_nn::models::Model;

use super::chunks::{ChunkLearner, Means, Plan};
use super::learner::TensorLearner;
use super::share::Share;
use crate::config::{RunConfig, Strategy};
use crate::evaluate::Evaluation;
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
    let params = state.params.clone();
    let (config, neighbours) = (session.config, session.neighbours);
    chunked(config, model, task, metric, (rank, neighbours), &params, |learner, plan| {
        if rank.rank() == 0 {
            tracing::info!("steps in {}", plan.describe());
        }
        gradient::train(session, learner, rank, state)
    })
}

/// Judges `params` within the run file's memory, if it limits it, as the only process.
///
/// # Errors
/// As [`train`].
pub(crate) fn judge(
    config: &RunConfig,
    model: &dyn Model,
    task: &TaskGraph,
    metric: &str,
    params: &Params,
) -> Option<Result<Evaluation>> {
    if config.train.strategy != Strategy::Tensor || config.tensor.memory.is_none() {
        return None;
    }
    let deadline = Duration::from_secs_f64(config.train.deadline_seconds);
    let judged = local::run(1, deadline, |rank| {
        chunked(config, model, task, metric, (rank, 1), params, |learner, _| {
            learner.judge(params, rank, rayon::current_num_threads())
        })
    });
    Some(judged.map(|mut all| all.swap_remove(0)))
}

/// Calls `run` with a learner in chunks, of a rank that shares a machine with so many.
fn chunked<T>(
    config: &RunConfig,
    model: &dyn Model,
    task: &TaskGraph,
    metric: &str,
    (rank, neighbours): (&dyn Communicator, usize),
    params: &Params,
    run: impl FnOnce(&ChunkLearner<'_>, &Plan) -> Result<T>,
) -> Result<T> {
    let stages = model.stages(task.features.is_sparse()).ok_or_else(|| {
        Error::usage(format!("{} does not train in chunks", model.name()))
            .hint("tensor.memory and tensor.chunks know gcn, sage (mean), gin, sgc, mlp and decoupled gcn")
    })?;
    let block = task.whole_block()?;
    let means = Means {
        model: stages.as_ref(),
        params,
        task,
        block: &block,
        rank: (rank.rank(), rank.size()),
        neighbours,
        dir: config.output.dir.clone(),
    };
    let plan = Plan::new(&config.tensor, &means)?;
    let share = Share::new(task, metric, rank, block.num_src());
    run(&ChunkLearner::new(stages.as_ref(), &block, share, &plan)?, &plan)
}
