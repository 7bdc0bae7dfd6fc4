//! Training in chunks.

use std::path::{Path, PathBuf};

use gnarl_common::{Error, Result, ResultExt};
use gnarl_config::RunConfig;
use gnarl_engine::Communicator;
use gnarl_nn::Params;
use gnarl_objects::{Uri, is_uri, working_folder};

use super::plan::{Means, Plan};
use super::step::Chunked;
use crate::encoder::Source;
use crate::evaluation::NodeScores;
use crate::session::Session;
use crate::state::TrainState;
use crate::sync::all_reduce::AllReduce;
use crate::sync::synchronization::Synchronization;

/// Trains by steps in chunks, as one of the ranks in tensor parallelism.
///
/// # Errors
/// If the graph is partitioned or too large for a block, if the model does not support chunks, and
/// those of training.
pub(crate) fn train(
    session: &Session<'_>,
    task: (Source<'_>, NodeScores<'_>),
    comm: &dyn Communicator,
    state: TrainState,
) -> Result<TrainState> {
    let params = state.params.clone();
    let place = (comm, session.local_ranks);
    with(session.config, task, place, &params, |step, plan| {
        if comm.rank() == 0 {
            tracing::info!("steps in {}", plan.describe());
        }
        AllReduce.train(session, step, comm, state)
    })
}

/// The folder for rows that do not fit in memory: that of the run, or the one on this host if the run is in an object
/// store.
fn folder_of_rows(run: &Path) -> Result<PathBuf> {
    if !is_uri(run) {
        return Ok(run.into());
    }
    let folder = working_folder(&Uri::parse(&run.to_string_lossy())?)?;
    std::fs::create_dir_all(&folder).at(&folder)?;
    Ok(folder)
}

/// The largest of the ranks' numbers.
fn most(comm: &dyn Communicator, number: usize) -> Result<usize> {
    let all = comm.all_gather("tensor.memory", bytemuck::bytes_of(&(number as u64)))?.concat();
    let all: Vec<u64> = bytemuck::pod_collect_to_vec(&all);
    Ok(all.into_iter().fold(number as u64, u64::max) as usize)
}

/// Calls `run` with steps in chunks, on a rank that shares a machine with so many.
///
/// # Errors
/// If the graph is partitioned or too large for a block, if the model does not support chunks, and
/// those of `run`.
pub(crate) fn with<T>(
    config: &RunConfig,
    (source, scores): (Source<'_>, NodeScores<'_>),
    (comm, local_ranks): (&dyn Communicator, usize),
    params: &Params,
    run: impl FnOnce(&Chunked<'_>, &Plan) -> Result<T>,
) -> Result<T> {
    let Source { model, graph } = source;
    let stages = model.chunk_stages(graph.features.is_sparse()).ok_or_else(|| {
        Error::usage(format!("{} does not train in chunks", model.name())).hint(
            "tensor.memory and tensor.chunks support: gcn, sage and ngnn (mean, max-pool), gin, sgc, mlp, gat, decoupled gcn and gat",
        )
    })?;
    let block = graph.whole_block()?;
    let means = Means {
        model: stages.as_ref(),
        params,
        graph,
        scores,
        block: &block,
        rank: (comm.rank(), comm.size()),
        neighbors: most(comm, local_ranks)?,
        dir: folder_of_rows(&config.output.dir)?,
    };
    let plan = Plan::new(&config.tensor, &means)?;
    run(&Chunked::new(stages.as_ref(), (&block, graph), scores, comm, &plan), &plan)
}
