//! Work shared out: pools of compute threads, and even shares of a range.

use std::ops::Range;

use rayon::ThreadPool;

use crate::error::{Error, Kind, Result};
use crate::profile;

/// The `part`-th of `parts` shares of `0..total` that differ by one at most.
pub fn even_share(total: usize, part: usize, parts: usize) -> Range<usize> {
    total * part / parts..total * (part + 1) / parts
}

/// A pool of `threads` compute threads, whose spans in a profile are those of the rank of this thread.
///
/// # Errors
/// [`Kind::Limit`] if the system starts no more threads.
pub fn pool(threads: usize) -> Result<ThreadPool> {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let rank = profile::rank();
    let builder = builder.thread_name(|i| format!("compute-{i}"));
    let builder = builder.start_handler(move |_| profile::set_rank(rank));
    builder
        .build()
        .map_err(|e| Error::new(Kind::Limit, format!("cannot start compute threads: {e}")))
}
