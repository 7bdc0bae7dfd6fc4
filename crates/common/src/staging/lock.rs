//! Advisory locks that name their holders.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::Path;

use super::interrupt::Temporary;
use crate::error::{Error, Result, ResultExt};

/// An exclusive lock on a file (`flock`), held until dropped. The file names the process that holds
/// it and is removed at the end; after a crash it stays, unlocked, for the next process to take.
#[derive(Debug)]
pub struct LockFile {
    // The name goes before the lock does: nobody can lock a name that is about to go.
    _name: Temporary,
    _file: File,
}

impl LockFile {
    /// Locks `path`; `busy` describes another holder's activity there, such as "is being written".
    ///
    /// # Errors
    /// [`crate::Kind::Usage`] naming the other process if it holds the lock.
    pub fn acquire(path: &Path, place: &Path, busy: &str) -> Result<Self> {
        Self::try_acquire(path)?.ok_or_else(|| {
            let holder = std::fs::read_to_string(path).unwrap_or_default();
            let holder = match holder.trim() {
                "" => "another process".to_string(),
                name => name.to_string(),
            };
            Error::usage(format!("{}: {busy} by {holder}", place.display()))
                .hint("wait until it ends, stop it, or choose another place")
        })
    }

    /// Locks `path` unless it is locked.
    ///
    /// # Errors
    /// If the file cannot be opened or written.
    pub fn try_acquire(path: &Path) -> Result<Option<Self>> {
        let made = Temporary::file(|| match lock(path) {
            Ok(Some(file)) => Ok((path.to_path_buf(), file)),
            Ok(None) => Err(None),
            Err(e) => Err(Some(e)),
        });
        match made {
            Ok((name, file)) => Ok(Some(Self { _name: name, _file: file })),
            Err(None) => Ok(None),
            Err(Some(e)) => Err(e),
        }
    }
}

/// The file, open and locked, unless another process has it.
fn lock(path: &Path) -> Result<Option<File>> {
    loop {
        let mut file = open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            // Random names keep processes apart on file systems without locks; only the error of the
            // second of two is lost there.
            Err(TryLockError::Error(e)) => {
                tracing::debug!("{}: no locks here: {e}", path.display())
            }
        }
        // The previous holder may have removed the file between the two calls: a lock on an
        // unlinked file excludes nobody.
        if is_at(&file, path) {
            file.set_len(0).at(path)?;
            writeln!(file, "{}", me()).at(path)?;
            return Ok(Some(file));
        }
    }
}

/// Process and host, for messages of other processes.
fn me() -> String {
    let host = gethostname::gethostname();
    format!("process {} on {}", std::process::id(), host.to_string_lossy())
}

/// Opens the lock file, which must not be a link: its content is replaced.
fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NOFOLLOW);
    }
    options.open(path).at(path)
}

/// Returns whether `path` still names the open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => open.dev() == named.dev() && open.ino() == named.ino(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_no_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".g.lock");
        let first = LockFile::try_acquire(&path).unwrap().expect("free");
        assert!(LockFile::try_acquire(&path).unwrap().is_none());
        let error = LockFile::acquire(&path, Path::new("g"), "is being written").unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("g: is being written by process {}", std::process::id())));
        drop(first);
        assert!(!path.exists());
        assert!(LockFile::try_acquire(&path).unwrap().is_some());
    }

    #[test]
    fn a_crash_leaves_a_file_that_can_be_locked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".g.lock");
        std::fs::write(&path, "process 1 on host").unwrap();
        assert!(LockFile::try_acquire(&path).unwrap().is_some());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let path = dir.path().join(".g.lock");
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        assert!(LockFile::try_acquire(&path).is_err());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }
}
