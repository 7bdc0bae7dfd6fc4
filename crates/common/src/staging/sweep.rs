//! Removal of leftovers of interrupted processes.

use std::path::{Path, PathBuf};

use super::lock::LockFile;
use crate::error::{Result, ResultExt};

/// Suffix of a folder that is about to be replaced, after the name of its replacement.
pub(super) const OLD: &str = ".old";

/// The lock of a place beside it: `.NAME.lock`.
pub(super) fn lock_of(parent: &Path, name: &str) -> PathBuf {
    parent.join(format!(".{name}.lock"))
}

/// Removes unfinished output of other processes in `parent`: temporaries of places whose lock
/// file exists and is not locked.
pub(super) fn sweep_others(parent: &Path, except: &str) -> Result<()> {
    for entry in std::fs::read_dir(parent).at(parent)? {
        let name = entry.at(parent)?.file_name();
        let name = name.to_string_lossy();
        let place = name.strip_prefix('.').and_then(|name| name.strip_suffix(".lock"));
        let Some(place) = place.filter(|place| *place != except && !place.is_empty()) else {
            continue;
        };
        // A folder of which nothing of ours is left needs no lock, and may not be ours.
        if leftovers(parent, place)?.is_empty() {
            continue;
        }
        if let Ok(Some(_lock)) = LockFile::try_acquire(&lock_of(parent, place)) {
            sweep(parent, place)?;
        }
    }
    Ok(())
}

/// Removes the temporaries of the place `name` in `parent`, whose lock the caller holds.
pub(super) fn sweep(parent: &Path, name: &str) -> Result<()> {
    for path in leftovers(parent, name)? {
        let old = path.to_string_lossy().ends_with(OLD);
        let out = parent.join(name);
        // Killed between two renames, where the file system has no exchange of names.
        if old && !out.exists() {
            std::fs::rename(&path, &out).at(&path)?;
            tracing::info!("restored {}, which was about to be replaced", out.display());
            continue;
        }
        remove(&path)?;
        tracing::info!("removed {}, which was left unfinished", path.display());
    }
    Ok(())
}

/// Removes temporary files in `dir`, whose lock the caller holds.
///
/// # Errors
/// If one cannot be removed.
pub fn sweep_files(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir).at(dir)? {
        let path = entry.at(dir)?.path();
        if is_temporary(&path) {
            remove(&path)?;
        }
    }
    Ok(())
}

/// Returns whether a path has the name of a temporary of this program.
pub fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once(".tmp-").is_some_and(|(_, random)| is_random(random))
}

fn remove(path: &Path) -> Result<()> {
    if path.is_dir() && !path.is_symlink() {
        std::fs::remove_dir_all(path).at(path)
    } else {
        std::fs::remove_file(path).at(path)
    }
}

/// Temporaries of the place `name`.
fn leftovers(parent: &Path, name: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(parent).at(parent)? {
        let entry = entry.at(parent)?;
        let file = entry.file_name();
        let file = file.to_string_lossy();
        let random = file.strip_prefix(name).and_then(|rest| rest.strip_prefix(".tmp-"));
        let random = random.map(|random| random.strip_suffix(OLD).unwrap_or(random));
        if random.is_some_and(is_random) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Returns whether a name ends with a random suffix: six letters and digits.
fn is_random(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
