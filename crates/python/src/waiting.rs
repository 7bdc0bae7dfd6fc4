//! Work that may wait for servers, which Ctrl-C ends.

use std::thread::Builder;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use gnarl_common::{Error, Kind, Result};
use pyo3::prelude::*;

use crate::errors::Raise;

/// Time between two looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// Does `work` on a thread of its own and waits for it, without the interpreter's lock. After Ctrl-C it is not waited for.
///
/// # Errors
/// That of the work; `KeyboardInterrupt`.
pub fn wait_for<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, done) = bounded(1);
    // Nobody may be waiting any more.
    let started = Builder::new().name("asking".into()).spawn(move || drop(sender.send(work())));
    started
        .map_err(|e| Error::new(Kind::Limit, format!("cannot start a thread: {e}")))
        .raise(py)?;
    loop {
        match py.detach(|| done.recv_timeout(LOOK)) {
            Ok(found) => return found.raise(py),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new(Kind::Limit, "a thread that asks servers died")).raise(py);
            }
        }
    }
}
