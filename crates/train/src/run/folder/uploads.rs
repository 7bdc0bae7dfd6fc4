//! The thread that uploads a run's files.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use gnarl_common::{Error, Kind, Result};

use super::objects::RunObjects;

/// Longest wait before an upload that failed is tried again.
const AGAIN: Duration = Duration::from_secs(60);

/// Uploads on a thread of their own, until they are dropped: what has changed before that is uploaded first.
#[derive(Debug)]
pub(super) struct Uploads {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    objects: RunObjects,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Files that have changed since they were uploaded.
    names: BTreeSet<&'static str>,
    ending: bool,
    /// Why files are not in the store.
    failed: Option<Error>,
    /// The process that has taken the run over.
    other: Option<String>,
}

impl Uploads {
    /// Starts the thread.
    ///
    /// # Errors
    /// If there can be no further thread.
    pub fn start(objects: RunObjects) -> Result<Self> {
        let shared = Shared { objects, state: Mutex::default(), changed: Condvar::new() };
        let shared = Arc::new(shared);
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("uploads".into()).spawn(move || own.run());
        let thread = thread.map_err(|e| Error::new(Kind::Io, format!("starting a thread: {e}")))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The files in the store.
    pub fn objects(&self) -> &RunObjects {
        &self.shared.objects
    }

    /// Uploads the files `names` soon.
    ///
    /// # Errors
    /// If another process has taken the run over.
    pub fn changed(&self, names: &[&'static str]) -> Result<()> {
        let mut state = self.shared.lock();
        if let Some(other) = &state.other {
            return Err(self.shared.taken(other));
        }
        state.names.extend(names);
        self.shared.changed.notify_one();
        Ok(())
    }

    /// Uploads what has changed, and ends.
    ///
    /// # Errors
    /// If the store cannot be reached, or another process has taken the run over.
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        self.shared.lock().ending = true;
        self.shared.changed.notify_one();
        let ended = thread.join();
        let mut state = self.shared.lock();
        if let Some(other) = &state.other {
            return Err(self.shared.taken(other));
        }
        match (ended, state.failed.take()) {
            (_, Some(e)) => {
                let folder = self.shared.objects.folder();
                Err(e.context(format!(
                    "uploading the files of {}, which stay there for --resume on this host",
                    folder.display()
                )))
            }
            (Err(_), None) => Err(Error::new(Kind::Io, "the thread of uploads ended early")),
            (Ok(()), None) => self.shared.objects.leave(),
        }
    }
}

/// After an error elsewhere the files are uploaded, too: a run that was stopped goes on from them.
impl Drop for Uploads {
    fn drop(&mut self) {
        if let Err(e) = self.end() {
            tracing::warn!("{e}");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self, other: &str) -> Error {
        let message = format!("{}: {other} has taken this run over", self.objects.uri());
        Error::new(Kind::Io, message)
            .hint("one process trains a run at a time; give the other one another output.dir")
    }

    fn run(&self) {
        loop {
            let mut state = self.lock();
            while !state.ending && state.names.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let (names, last) = (std::mem::take(&mut state.names), state.ending);
            if names.is_empty() {
                return;
            }
            drop(state);
            let pushed = self.objects.other().and_then(|other| match other {
                Some(other) => Ok(Some(other)),
                None => {
                    let names: Vec<&str> = names.iter().copied().collect();
                    self.objects.push(&names).map(|()| None)
                }
            });
            let mut state = self.lock();
            match pushed {
                Ok(None) => state.failed = None,
                Ok(other) => {
                    state.other = other;
                    return;
                }
                Err(e) => {
                    if !last {
                        tracing::warn!("{}: not uploaded yet: {e}", self.objects.uri());
                    }
                    state.failed = Some(e);
                    state.names.extend(names);
                    if last {
                        return;
                    }
                    let waiting = |state: &mut State| !state.ending;
                    let waited = self.changed.wait_timeout_while(state, AGAIN, waiting);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }
}
