//! Beginnings of a run.

/// How to begin in a folder that has a run already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Beside a finished run; refuse to touch an unfinished one.
    Fresh,
    /// Go on from the checkpoint.
    Resume,
    /// Start over whatever is there.
    Restart,
}
