//! Addresses in object stores, where a command takes a path.

#[cfg(not(feature = "cloud"))]
mod missing;
#[cfg(feature = "cloud")]
mod upload;

use std::path::{Path, PathBuf};

use gnarl_common::Result;
use gnarl_config::data_folder;
use gnarl_objects::is_uri;

use crate::output::while_busy;

#[cfg(not(feature = "cloud"))]
pub use missing::Upload;
#[cfg(feature = "cloud")]
pub use upload::Upload;

/// The folder of this host with the dataset, part or partition at `path`: `path` itself, or, if it is the
/// address of an object store, the folder of the cache into which it is fetched.
///
/// # Errors
/// If it cannot be fetched, or this build has no object stores.
pub fn local(path: &Path) -> Result<PathBuf> {
    if !is_uri(path) {
        return Ok(path.into());
    }
    while_busy("fetching", path, || data_folder(path))
}
