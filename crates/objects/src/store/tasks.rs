//! Requests that are made at once.

use gnarl_common::{Error, Kind, Result};
use tokio::task::JoinError;

/// The outcome of one of several tasks.
///
/// # Errors
/// Its own; if it was stopped.
pub(crate) fn arrived(joined: Option<std::result::Result<Result<()>, JoinError>>) -> Result<()> {
    match joined {
        Some(Ok(done)) => done,
        Some(Err(e)) => Err(Error::new(Kind::Io, format!("a transfer ended early: {e}"))),
        None => Ok(()),
    }
}
