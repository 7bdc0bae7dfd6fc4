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
    let mut bytes = Vec::new();
    if comm.rank() == 0 {
        let found = pool(threads.host)?.install(evaluate)?;
        bytes = serde_json::to_vec(&found).unwrap_or_default();
    }
    let all = comm.all_gather("evaluation", &bytes)?;
    serde_json::from_slice(&all[0])
        .map_err(|e| Error::new(Kind::Rank, format!("rank 0 sent no evaluation: {e}")))
}
