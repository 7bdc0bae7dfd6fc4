//! The ranks of a run.

use gnarl_engine::Communicator;

/// The ranks of a run, and the machine each is on.
pub(crate) struct Ranks<'a> {
    /// Communicator of this rank.
    pub comm: &'a dyn Communicator,
    /// Host names, by rank.
    pub hosts: &'a [String],
}
