//! Epochs that parts train alone before weights are averaged.

use std::ops::RangeInclusive;

use crate::session::Session;

/// Epochs between two averagings, from `after` on; windows end at multiples of `sync_every`.
pub(super) fn windows(
    session: &Session<'_>,
    after: usize,
) -> impl Iterator<Item = RangeInclusive<usize>> + Send {
    let (every, last) = (session.config.train.sync_every, session.config.train.epochs);
    let mut next = after + 1;
    std::iter::from_fn(move || {
        let start = next;
        let end = (start.div_ceil(every) * every).min(last);
        next = end + 1;
        (start <= last).then_some(start..=end)
    })
}
