//! Tables that are written into a folder of this host, and uploaded when they are whole.

use std::path::{Path, PathBuf};

use gnarl_common::staging::Staging;
use gnarl_common::{Error, Result, ResultExt};
use gnarl_objects::{Remote, Uri};

use crate::output::while_busy;

/// A table on its way to an object store. Dropping it removes its files of this host, and so does an
/// interruption.
pub struct Upload {
    remote: Remote,
    scratch: Staging,
}

impl Upload {
    /// Prepares the upload of a table to the address `out`. No request is made.
    ///
    /// # Errors
    /// If the address or a setting of the environment is invalid, or the folder for temporary files cannot be
    /// written to.
    pub fn prepare(out: &Path) -> Result<Self> {
        let remote = Remote::open(&Uri::parse(&out.to_string_lossy())?)?;
        // A place of this process alone. What another one left unfinished there is removed.
        let place = std::env::temp_dir().join(format!("gnarl-upload-{}", std::process::id()));
        let scratch = Staging::create(&place, "upload")?;
        keep_private(scratch.path())?;
        Ok(Self { remote, scratch })
    }

    /// The path to write the table to.
    pub fn local(&self) -> PathBuf {
        self.scratch.path().join(self.remote.uri().name())
    }

    /// Makes sure that `files`, which are to be written, can be uploaded.
    ///
    /// # Errors
    /// If an object is in the way, or the store cannot be reached.
    pub fn check(&self, files: &[PathBuf], force: bool) -> Result<()> {
        if is_group(files) {
            return self.remote.check_group(force);
        }
        self.remote.check_objects(&names(files)?, force)
    }

    /// Uploads `files`, the table's own last: their addresses.
    ///
    /// # Errors
    /// If an object is in the way, or a request fails.
    pub fn finish(self, files: &[PathBuf], force: bool) -> Result<Vec<String>> {
        let Self { remote, scratch } = self;
        let names = names(files)?;
        let upload = || match is_group(files) {
            true => files.iter().try_for_each(|folder| remote.upload_group(folder, force)),
            false => {
                let mut each = names.iter().zip(files).rev();
                each.try_for_each(|(name, file)| remote.upload_object(name, file, force))
            }
        };
        while_busy("uploading to", Path::new(&remote.uri().to_string()), upload)?;
        drop(scratch);
        Ok(names.iter().map(|name| remote.uri().sibling(name).to_string()).collect())
    }
}

/// Closes a folder to other users, with whom this one may share the folder for temporary files.
#[cfg(unix)]
fn keep_private(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).at(folder)
}

#[cfg(not(unix))]
fn keep_private(_: &Path) -> Result<()> {
    Ok(())
}

/// True for the folder of a Zarr group, which is one object per file.
fn is_group(files: &[PathBuf]) -> bool {
    let extension =
        |file: &PathBuf| file.extension().is_some_and(|e| e.eq_ignore_ascii_case("zarr"));
    files.iter().any(extension)
}

/// The names of files, which are those of objects.
fn names(files: &[PathBuf]) -> Result<Vec<&str>> {
    files
        .iter()
        .map(|file| {
            let name = file.file_name().and_then(|name| name.to_str());
            name.ok_or_else(|| Error::usage(format!("{}: no name of an object", file.display())))
        })
        .collect()
}
