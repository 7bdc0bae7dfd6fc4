//! The sampling service of a part.

use gnarl_common::Result;

use super::hop::{HopReply, HopRequest};

/// A pending reply; calling it waits for it.
pub type Answer = Box<dyn FnOnce() -> Result<HopReply> + Send>;

/// Samples neighbors in one part, local or remote.
///
/// Equal requests get equal replies from every service of the part.
pub trait NeighborService: Send + Sync {
    /// Begins to sample a hop. Remote services send the request at once, so that several work at
    /// the same time; a local one works when the reply is called for.
    fn ask(&self, request: HopRequest) -> Answer;
}
