//! Errors of several importers.

use std::path::Path;

use gnarl_common::{Error, Kind, Result};

/// The error of input without a node or an edge.
pub(super) fn empty_graph(path: &Path) -> Error {
    Error::invalid(format!("{}: the graph is empty: no edge", path.display()))
        .hint("an import requires at least one edge")
}

/// The error of two options for reverses.
pub(super) fn both_reverses() -> Error {
    Error::usage("conflicting options for reverse edges").hint(
        "--reverse stores them as edge types of their own, --symmetrize as edges of the same type",
    )
}

/// Rejects a number of nodes whose degrees the budget cannot hold, before anything of that size is
/// allocated: a single id in a file decides it. `place` names the origin of the number.
///
/// # Errors
/// Of [`Kind::Limit`].
pub(super) fn check_count(nodes: u64, memory: u64, place: impl FnOnce() -> String) -> Result<()> {
    let needed = nodes.saturating_mul(8);
    if needed <= memory {
        return Ok(());
    }
    let [needed, allowed] = [needed, memory].map(|bytes| bytes >> 20);
    let message = format!(
        "{}: degrees of {nodes} nodes need {needed} MiB, --memory allows {allowed} MiB",
        place()
    );
    Err(Error::new(Kind::Limit, message).hint(
        "ids count up from 0: correct an id that is too large (--num-nodes N refuses those from N on), or raise --memory",
    ))
}

/// The error of a budget that does not suffice.
pub(super) fn over_budget(memory: u64, what: &str) -> Error {
    Error::new(Kind::Limit, format!("{what} does not fit in the {} MiB of --memory", memory >> 20))
        .hint("raise --memory")
}
