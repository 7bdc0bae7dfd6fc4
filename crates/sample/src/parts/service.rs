//! What answers for a part.

use gnarl_common::Result;

use super::hop::{HopReply, HopRequest};

/// An answer that may still be on its way; calling it waits for it.
pub type Answer = Box<dyn FnOnce() -> Result<HopReply> + Send>;

/// Draws neighbours from one part, wherever it is.
///
/// The same request gets the same answer, from whichever service of the part.
pub trait NeighborService: Send + Sync {
    /// Begins to draw a hop. Services elsewhere send the request at once, so that several draw at the
    /// same time; one in this process works when the answer is called for.
    fn ask(&self, request: HopRequest) -> Answer;
}
