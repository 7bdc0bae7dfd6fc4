//! The datasets of the cache that are in use, by any process.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use gnarl_common::{Error, Kind, Result, ResultExt};

/// Suffix of the file beside a dataset that is locked while it is used, and whose time is the last use. It stays
/// when the dataset is removed: a lock on a removed file would exclude nobody.
const SUFFIX: &str = ".used";

/// Datasets that this process uses until it ends, by the path of their file.
static KEPT: Mutex<BTreeMap<PathBuf, Usage>> = Mutex::new(BTreeMap::new());

/// Longest wait for a process that fetches or removes a dataset, or uses one whose folder is gone.
const LONGEST: Duration = Duration::from_secs(3600);
/// Time after which a wait is told.
const TOLD: Duration = Duration::from_secs(2);
/// Time between two looks at a lock.
const LOOK: Duration = Duration::from_millis(50);

/// A use of a dataset, which is not removed meanwhile.
#[derive(Debug)]
pub(super) struct Usage {
    path: PathBuf,
    locked: File,
}

impl Usage {
    /// Begins the use of the dataset `name` in the cache `root`, whether it is there or not. Waits for a
    /// process that fetches or removes it.
    ///
    /// # Errors
    /// If the cache cannot be written to, or that process takes longer than an hour.
    pub fn begin(root: &Path, name: &str) -> Result<Self> {
        Self::locked(root, name, File::try_lock_shared)
    }

    /// As [`Self::begin`], where no other process uses it.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn alone(root: &Path, name: &str) -> Result<Self> {
        // A use of this process, of a folder that was removed under it, would be waited for in vain.
        drop(kept().remove(&file_of(root, name)));
        Self::locked(root, name, File::try_lock)
    }

    fn locked(
        root: &Path,
        name: &str,
        lock: impl Fn(&File) -> std::result::Result<(), TryLockError>,
    ) -> Result<Self> {
        let path = file_of(root, name);
        let locked = open(&path)?;
        let start = Instant::now();
        let mut told = false;
        loop {
            match lock(&locked) {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if start.elapsed() < LONGEST => {
                    if start.elapsed() > TOLD && !told {
                        told = true;
                        tracing::info!("waiting for another process that uses {}", path.display());
                    }
                    sleep(LOOK);
                }
                Err(TryLockError::WouldBlock) => {
                    let seconds = LONGEST.as_secs();
                    let message =
                        format!("{}: in use by another process for {seconds} s", path.display());
                    return Err(Error::new(Kind::Limit, message)
                        .hint("end that process, or set GNARL_CACHE to another folder"));
                }
                // File systems without locks keep temporary folders apart by their random names.
                Err(TryLockError::Error(e)) => {
                    tracing::debug!("{}: no locks here: {e}", path.display());
                    break;
                }
            }
        }
        let usage = Self { path, locked };
        usage.locked.set_modified(SystemTime::now()).at(&usage.path)?;
        Ok(usage)
    }

    /// Goes on until the process ends.
    pub fn keep(self) {
        // One is enough, and in a process that was forked off the first is its parent's, too.
        kept().entry(self.path.clone()).or_insert(self);
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        // Not left to the end of the file: a child that was forked off meanwhile has it open, too.
        if let Err(e) = self.locked.unlock() {
            tracing::debug!("{}: {e}", self.path.display());
        }
    }
}

fn kept() -> MutexGuard<'static, BTreeMap<PathBuf, Usage>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time of the last use of the dataset `name`.
pub(super) fn last_used(root: &Path, name: &str) -> SystemTime {
    let time = std::fs::metadata(file_of(root, name)).and_then(|metadata| metadata.modified());
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Removes the dataset `name`, unless it is in use: true if it is gone.
///
/// # Errors
/// If it cannot be removed.
pub(super) fn remove(root: &Path, name: &str) -> Result<bool> {
    let path = file_of(root, name);
    let locked = open(&path)?;
    if locked.try_lock().is_err() {
        return Ok(false);
    }
    let _alone = Usage { path, locked };
    let folder = root.join(name);
    std::fs::remove_dir_all(&folder).at(&folder)?;
    Ok(true)
}

fn file_of(root: &Path, name: &str) -> PathBuf {
    root.join(format!("{name}{SUFFIX}"))
}

fn open(path: &Path) -> Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).open(path).at(path)
}
