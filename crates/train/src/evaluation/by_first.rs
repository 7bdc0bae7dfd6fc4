//! Evaluation on the first rank.

use gnarl_common::threads::pool;
use gnarl_common::{Error, Kind, Result};
use gnarl_engine::Communicator;

use super::found::Evaluation;
use crate::session::Threads;

/// Runs `evaluate` on the first rank, with the threads of its host; returns its result on all
/// ranks.
///
/// # Errors
/// Those of `evaluate`, or if a rank fails.
pub(crate) fn by_first(
    comm: &dyn Communicator,
    threads: Threads,
    evaluate: impl FnOnce() -> Result<Evaluation> + Send,
) -> Result<Evaluation> {
    let found = match comm.rank() {
        0 => Some(pool(threads.host)?.install(evaluate)?),
        _ => None,
    };
    of_first(comm, found)
}

/// The result `found` on the first rank, on all ranks.
///
/// # Errors
/// If a rank fails.
pub(crate) fn of_first(comm: &dyn Communicator, found: Option<Evaluation>) -> Result<Evaluation> {
    let bytes = found.map_or_else(Vec::new, |found| serde_json::to_vec(&found).unwrap_or_default());
    let all = comm.all_gather("evaluation", &bytes)?;
    serde_json::from_slice(&all[0])
        .map_err(|e| Error::new(Kind::Rank, format!("rank 0 sent no evaluation: {e}")))
}
