//! The ranks of a run.

use gnarl_engine::Communicator;

/// The ranks of a run, and the machine each is on.
pub(crate) struct Ranks<'a> {
    /// This one.
    pub rank: &'a dyn Communicator,
    /// Names of the machines, by rank.
    pub hosts: &'a [String],
}
