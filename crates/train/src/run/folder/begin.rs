//! Modes of starting a run.

/// The mode of starting in a folder with an existing run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Beside a finished run; an unfinished one is an error.
    Fresh,
    /// Continue from the checkpoint.
    Resume,
    /// Start over whatever exists.
    Restart,
}
