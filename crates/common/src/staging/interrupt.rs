//! Interruption: requests to stop, and the removal of all unfinished output.
//!
//! A program that handles signals calls [`request`] with the signal. Work that can stop at a good
//! moment by itself (training, at the end of an epoch) has a [`Stoppable`] and polls [`requested`];
//! for all other work, or when a grace period is over, the program calls [`abandon`] and exits.
//! Libraries never install a handler.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The kind of a temporary name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    File,
    Folder,
}

static TEMPORARIES: Mutex<BTreeMap<PathBuf, Form>> = Mutex::new(BTreeMap::new());
static SIGNAL: Mutex<Option<i32>> = Mutex::new(None);
static SIGNALLED: Condvar = Condvar::new();
static STOPPABLE: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
static ABANDONED: AtomicBool = AtomicBool::new(false);
static ADVICE: Mutex<Option<String>> = Mutex::new(None);

fn locked<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A temporary file or folder of this process; removed when dropped, and by [`abandon`].
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// Makes a temporary file with `make`, which returns its name, and a further value.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn file<T, E>(make: impl FnOnce() -> Result<(PathBuf, T), E>) -> Result<(Self, T), E> {
        Self::new(Form::File, make)
    }

    /// Makes a temporary folder with `make`, which returns its name. Its contents are temporary
    /// too.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn folder<E>(make: impl FnOnce() -> Result<PathBuf, E>) -> Result<Self, E> {
        let made = Self::new(Form::Folder, || make().map(|path| (path, ())));
        made.map(|(folder, ())| folder)
    }

    fn new<T, E>(
        form: Form,
        make: impl FnOnce() -> Result<(PathBuf, T), E>,
    ) -> Result<(Self, T), E> {
        // Holding the lock while making it: an `abandon` either comes before, or knows of it.
        let mut temporaries = locked(&TEMPORARIES);
        let (path, kept) = make()?;
        temporaries.insert(path.clone(), form);
        Ok((Self { path }, kept))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the temporary its final name by `rename`, after which it is no temporary any more. An
    /// [`abandon`] comes before or after, never in between.
    ///
    /// # Errors
    /// Those of `rename`; the temporary stays one then.
    pub fn commit<E>(self, rename: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), E> {
        let mut temporaries = locked(&TEMPORARIES);
        let renamed = rename(&self.path);
        if renamed.is_ok() {
            temporaries.remove(&self.path);
        }
        drop(temporaries);
        renamed
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Blocks for good after `abandon`: the process is about to end and says so itself.
        let form = locked(&TEMPORARIES).remove(&self.path);
        if let Some(form) = form {
            remove(&self.path, form);
        }
    }
}

/// Returns whether `path` is a temporary folder of this process.
pub(super) fn is_temporary(path: &Path) -> bool {
    locked(&TEMPORARIES).contains_key(path)
}

/// Removes a temporary. A failure is ignored: the next process to claim the place removes
/// leftovers.
fn remove(path: &Path, form: Form) {
    let _ = match form {
        Form::File => std::fs::remove_file(path),
        Form::Folder => std::fs::remove_dir_all(path),
    };
}

/// Removes every temporary of the process and blocks further renames: only to be called
/// right before the process exits. Returns the folders removed.
pub fn abandon() -> Vec<PathBuf> {
    ABANDONED.store(true, Ordering::SeqCst);
    let temporaries = locked(&TEMPORARIES);
    let mut folders = Vec::new();
    for (path, form) in &*temporaries {
        // Other threads may still be creating files inside.
        for _ in 0..20 {
            remove(path, *form);
            if !path.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        if *form == Form::Folder {
            folders.push(path.clone());
        }
    }
    std::mem::forget(temporaries);
    folders
}

/// Returns whether [`abandon`] was called: the process is about to exit, and causes errors in other
/// threads.
pub fn abandoned() -> bool {
    ABANDONED.load(Ordering::SeqCst)
}

/// Requests running work to stop; the first `signal` counts.
pub fn request(signal: i32) {
    locked(&SIGNAL).get_or_insert(signal);
    SIGNALLED.notify_all();
}

/// The signal of the first request, if any.
pub fn requested() -> Option<i32> {
    *locked(&SIGNAL)
}

/// Waits for a request; returns its signal.
pub fn wait() -> i32 {
    let mut signal = locked(&SIGNAL);
    loop {
        match *signal {
            Some(number) => return number,
            None => signal = SIGNALLED.wait(signal).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// Waits for a request, and no longer than `most`; returns its signal, if there is one.
pub fn wait_for(most: Duration) -> Option<i32> {
    let waited = SIGNALLED.wait_timeout_while(locked(&SIGNAL), most, |signal| signal.is_none());
    *waited.unwrap_or_else(PoisonError::into_inner).0
}

/// A guard of work that polls [`requested`] and stops by itself.
#[derive(Debug)]
pub struct Stoppable(&'static str);

impl Stoppable {
    /// Starts such work; `when` names the moment at which it stops, such as "at the end of this
    /// epoch".
    pub fn new(when: &'static str) -> Self {
        locked(&STOPPABLE).push(when);
        Self(when)
    }
}

impl Drop for Stoppable {
    fn drop(&mut self) {
        let mut running = locked(&STOPPABLE);
        if let Some(place) = running.iter().position(|when| *when == self.0) {
            running.remove(place);
        }
    }
}

/// The moment at which running work stops by itself; `None` if there is none.
pub fn stops() -> Option<&'static str> {
    locked(&STOPPABLE).first().copied()
}

/// Sets the advice to the user after an interruption at this point, such as how to resume.
pub fn advise(advice: impl Into<String>) {
    *locked(&ADVICE) = Some(advice.into());
}

/// The advice set last.
pub fn advice() -> Option<String> {
    locked(&ADVICE).clone()
}
