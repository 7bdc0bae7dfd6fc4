//! Folders under a temporary name.

use std::path::{Path, PathBuf};

use super::claim::Joined;
use super::interrupt::Temporary;
use super::sweep::OLD;
use super::{Claim, durable};
use crate::error::{Error, Result, ResultExt};
use crate::integrity;

/// A folder being written beside its place. Dropping it removes it.
#[derive(Debug)]
pub struct Staging {
    out: PathBuf,
    // Before the claim, so that the folder is gone when the place becomes free.
    folder: Temporary,
    claim: Joined,
}

impl Staging {
    /// Starts a folder that will appear at `out`; `marker` is the file that identifies folders of
    /// its kind. Uses this process's [`Claim`] on the place, or makes one for as long as the folder
    /// is written.
    ///
    /// # Errors
    /// As [`Claim::new`] for a place that is not to be replaced.
    pub fn create(out: &Path, marker: &str) -> Result<Self> {
        let claim = Claim::join(out, marker)?;
        let parent = claim.parent();
        let mut builder = tempfile::Builder::new();
        let prefix = format!("{}.tmp-", claim.name());
        builder.prefix(&prefix);
        // The umask decides about access, unlike for private temporary folders.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        let made = || builder.tempdir_in(parent).map(tempfile::TempDir::keep);
        let folder = Temporary::folder(made).map_err(|e| Error::io(parent, e))?;
        Ok(Self { out: out.into(), folder, claim })
    }

    /// Path of the temporary folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The claim that the folder is written under.
    pub fn claim(&self) -> &Claim {
        self.claim.claim()
    }

    /// Gives the folder its name, replacing an existing one if the claim allows it: once all that it holds is on disk, so that
    /// a power cut leaves the old folder or the new one, whole.
    ///
    /// # Errors
    /// If the file system reports an error, or a file that was read is damaged; an existing folder stays.
    pub fn commit(self) -> Result<()> {
        let Self { out, folder, claim } = self;
        integrity::settle()?;
        durable::sync_tree(folder.path())?;
        let renamed = folder.commit(|tmp| replace_dir(tmp, &out));
        drop(claim);
        renamed
    }
}

/// Moves `tmp` to `out`, replacing an existing folder. Where the system can exchange two names in
/// one step, `out` names a complete folder at every moment.
fn replace_dir(tmp: &Path, out: &Path) -> Result<()> {
    let empty = std::fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none());
    if !out.exists() || empty {
        std::fs::rename(tmp, out).at(out)?;
        return durable::sync_parent(out);
    }
    if exchange(tmp, out) {
        // The old folder is removed once the new one has its name for good.
        durable::sync_parent(out)?;
        return std::fs::remove_dir_all(tmp).at(tmp);
    }
    let mut old = tmp.as_os_str().to_owned();
    old.push(OLD);
    std::fs::rename(out, &old).at(out)?;
    std::fs::rename(tmp, out).at(out)?;
    durable::sync_parent(out)?;
    std::fs::remove_dir_all(&old).at(&old)
}

/// Exchanges two directories' names; `false` if this system or file system cannot.
#[cfg(target_os = "linux")]
fn exchange(a: &Path, b: &Path) -> bool {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> bool {
    false
}
