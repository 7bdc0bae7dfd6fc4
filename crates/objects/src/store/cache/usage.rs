//! The datasets of the cache that are in use, by any process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use gnarl_common::{Result, ResultExt};

/// Suffix of the file beside a dataset that is locked while it is used, and whose time is the last use. It stays
/// when the dataset is removed: a lock on a removed file would exclude nobody.
const SUFFIX: &str = ".used";

/// Datasets that this process uses until it ends.
static KEPT: Mutex<Vec<Usage>> = Mutex::new(Vec::new());

/// A use of a dataset, which is not removed meanwhile.
#[derive(Debug)]
pub(super) struct Usage {
    _locked: File,
}

impl Usage {
    /// Begins the use of the dataset `name` in the cache `root`, whether it is there or not. Waits for a
    /// process that fetches or removes it.
    ///
    /// # Errors
    /// If the cache cannot be written to.
    pub fn begin(root: &Path, name: &str) -> Result<Self> {
        Self::locked(root, name, File::lock_shared)
    }

    /// As [`Self::begin`], where no other process uses it.
    ///
    /// # Errors
    /// If the cache cannot be written to.
    pub fn alone(root: &Path, name: &str) -> Result<Self> {
        Self::locked(root, name, File::lock)
    }

    fn locked(
        root: &Path,
        name: &str,
        lock: impl FnOnce(&File) -> std::io::Result<()>,
    ) -> Result<Self> {
        let path = file_of(root, name);
        let file = open(&path)?;
        // File systems without locks keep temporary folders apart by their random names.
        if let Err(e) = lock(&file) {
            tracing::debug!("{}: no locks here: {e}", path.display());
        }
        file.set_modified(SystemTime::now()).at(&path)?;
        Ok(Self { _locked: file })
    }

    /// Goes on until the process ends.
    pub fn keep(self) {
        KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }
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
    let file = open(&file_of(root, name))?;
    if file.try_lock().is_err() {
        return Ok(false);
    }
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
