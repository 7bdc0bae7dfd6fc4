//! Tables in a folder: a Zarr group.

use std::path::{Path, PathBuf};

use gnarl_common::folders::bytes_in;
use gnarl_common::staging::{Claim, Staging};
use gnarl_common::{Error, Result, ResultExt};

use crate::export::table::Written;

/// The file that a Zarr group has, in the format's version 3.
const MARKER: &str = "zarr.json";

/// A folder being written under a temporary name beside its place. Dropping it removes it, and so
/// does an interruption.
pub struct Folder {
    out: PathBuf,
    force: bool,
    staging: Staging,
}

impl Folder {
    /// Claims the place of the folder `out`.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if a group exists and is not to be replaced, if anything else is
    /// in the way, or if another process is writing there.
    pub fn claim(out: &Path, force: bool) -> Result<Self> {
        // Before the claim, which creates the parent of `out`.
        free(out, force)?;
        // Writers of this process would share the claim; the staging refuses the second of them.
        let _claim = Claim::new(out, MARKER, force)?;
        let staging = Staging::create(out, MARKER)?;
        Ok(Self { out: out.into(), force, staging })
    }

    /// The name of the folder.
    pub fn files(&self) -> &[PathBuf] {
        std::slice::from_ref(&self.out)
    }

    /// The path of the folder until it has its name.
    pub fn temporary(&self) -> PathBuf {
        self.staging.path().into()
    }

    /// Gives the folder its name, in exchange for an older one.
    ///
    /// # Errors
    /// If the file system reports an error, or something has come into the way.
    pub fn commit(self) -> Result<Written> {
        let bytes = bytes_in(self.staging.path())?;
        free(&self.out, self.force)?;
        self.staging.commit()?;
        Ok(Written { files: vec![self.out], bytes })
    }
}

/// Makes sure that a group can have the name `out`.
fn free(out: &Path, force: bool) -> Result<()> {
    let Ok(metadata) = std::fs::symlink_metadata(out) else { return Ok(()) };
    let place = out.display();
    if metadata.is_symlink() {
        return Err(Error::usage(format!("{place}: is a link, which is not replaced"))
            .hint("give the folder that it leads to as --out"));
    }
    if metadata.is_dir() && std::fs::read_dir(out).at(out)?.next().is_none() {
        return Ok(());
    }
    if !is_group(out) {
        return Err(Error::usage(format!("{place}: exists and is not a Zarr group"))
            .hint("choose another --out, or remove it"));
    }
    if !force {
        return Err(Error::usage(format!("{place}: exists already"))
            .hint("replace it with --force, or choose another --out"));
    }
    Ok(())
}

/// True for folders of Zarr groups. Arrays have a file of the same name.
fn is_group(folder: &Path) -> bool {
    let Ok(text) = std::fs::read(folder.join(MARKER)) else { return false };
    let metadata: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
    metadata.is_some_and(|metadata| metadata["node_type"] == "group")
}
