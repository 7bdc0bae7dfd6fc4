//! The place of a table: one file, two that belong together, or a folder.

mod files;
#[cfg(feature = "zarr")]
mod folder;

use std::path::{Path, PathBuf};

use gnarl_common::Result;

use super::table::Written;
pub(super) use files::Files;
#[cfg(feature = "zarr")]
pub(super) use folder::Folder;

/// A table under a temporary name. Dropping it removes it, and so does an interruption.
pub(super) enum Place {
    /// Files in a temporary folder beside their place.
    Files(Files),
    /// A folder.
    #[cfg(feature = "zarr")]
    Folder(Folder),
}

impl Place {
    /// The path of `file`, which is one of the table's, until it has its name.
    pub fn temporary(&self, file: &Path) -> PathBuf {
        match self {
            Self::Files(files) => files.temporary(file),
            #[cfg(feature = "zarr")]
            Self::Folder(folder) => folder.temporary(),
        }
    }

    /// The names that the table will have.
    pub fn files(&self) -> &[PathBuf] {
        match self {
            Self::Files(files) => files.files(),
            #[cfg(feature = "zarr")]
            Self::Folder(folder) => folder.files(),
        }
    }

    /// Gives the table its name.
    ///
    /// # Errors
    /// If the file system reports an error, or something has come into the way.
    pub fn commit(self) -> Result<Written> {
        match self {
            Self::Files(files) => files.commit(),
            #[cfg(feature = "zarr")]
            Self::Folder(folder) => folder.commit(),
        }
    }
}
