//! Errors of failing ranks, shared by all engines.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use gnarl_common::{Context, Error, Kind, Result, integrity};

pub(crate) fn rank_error(rank: usize, what: &str) -> Error {
    Error::new(Kind::Rank, format!("rank {rank} {what}"))
}

/// The result of `body`, with a panic converted to an error of the rank: that of a file that is known to be damaged, if there is
/// one. Numbers read of it may lead anywhere.
pub(crate) fn caught<T>(rank: usize, body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        integrity::so_far().while_doing(|| format!("rank {rank}"))?;
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(rank_error(rank, &format!("panicked: {text}")))
    })
}

/// `rank` waited until the deadline, and the `missing` ranks did not arrive.
pub(crate) fn late(
    rank: usize,
    stage: &str,
    deadline: Duration,
    missing: impl Iterator<Item = usize>,
) -> Error {
    let missing: Vec<String> = missing.map(|rank| rank.to_string()).collect();
    let (seconds, missing) = (deadline.as_secs_f64(), missing.join(", "));
    rank_error(rank, &format!("waited {seconds:.0} s at '{stage}' for rank {missing}"))
        .hint("that rank is slow or stuck; a longer train.deadline_seconds gives it more time")
}

/// `rank` is at `mine` while others are at `theirs`.
pub(crate) fn apart(rank: usize, mine: &str, theirs: &str) -> Error {
    rank_error(rank, &format!("is at '{mine}' while others are at '{theirs}'"))
}

/// `rank` stopped at `stage` since `failed` gave up for that `reason`.
pub(crate) fn stopped(rank: usize, stage: &str, failed: usize, reason: &str) -> Error {
    // The reason is an error as it is printed: its hint is that of the whole.
    let (reason, hint) =
        reason.split_once("\nhint: ").map_or((reason, None), |(r, h)| (r, Some(h)));
    let error = rank_error(rank, &format!("stopped at '{stage}'"))
        .context(format!("rank {failed} failed: {reason}"));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// `rank` passed another number of values to `stage` than others did.
pub(crate) fn another_length(rank: usize, stage: &str) -> Error {
    rank_error(rank, &format!("passed another number of values to '{stage}' than other ranks"))
}
