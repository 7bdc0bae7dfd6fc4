//! Ranks of an inference: threads of one process, or processes under MPI.

use std::time::Instant;

use gnarl_common::Result;
use serde_json::Value;

use super::args::InferArgs;
use crate::commands::parse;

/// Returns an error if this is one of several processes without MPI.
pub(super) fn alone() -> Result<()> {
    parse::alone("gnarl infer without --engine mpi", "start one process with --ranks")
}

/// Infers as one of the processes started by `mpirun`; only the first one writes and returns a result.
#[cfg(feature = "mpi")]
pub(super) fn under_mpi(args: &InferArgs, start: Instant) -> Result<Value> {
    use gnarl_engine::Communicator;

    use super::predict::{open, predict};

    // All processes wait for each other from the start, and so the deadline is the run's.
    let deadline = gnarl_train::TrainedRun::deadline_of(&args.run_dir)?;
    gnarl_engine::mpi::run(deadline, |rank| {
        let run = open(args)?;
        rank.barrier("opening the run")?;
        // Those of a host share its threads.
        let here = crate::output::launched("LOCAL_SIZE").map_or(1, |ranks| ranks.max(1) as usize);
        let threads = (rayon::current_num_threads() / here).max(1);
        let ranks = (rank as &dyn Communicator, threads);
        let lead = |leader: &gnarl_train::Leader<'_>| predict(args, (&run, leader), start);
        let found = gnarl_train::infer_on(&run, ranks, args.passes(), lead)?;
        Ok(found.unwrap_or(Value::Null))
    })
}

#[cfg(not(feature = "mpi"))]
pub(super) fn under_mpi(_: &InferArgs, _: Instant) -> Result<Value> {
    Err(gnarl_common::Error::usage("--engine mpi is not supported by this build")
        .hint("build with --features mpi, which requires an MPI library; see docs/cluster.md"))
}
