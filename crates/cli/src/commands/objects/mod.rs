//! Addresses in object stores, where a command takes a path.

#[cfg(feature = "cloud")]
mod dataset;
#[cfg(not(feature = "cloud"))]
mod missing;
#[cfg(feature = "cloud")]
mod upload;

use std::path::{Path, PathBuf};

use gnarl_common::Result;

#[cfg(not(feature = "cloud"))]
pub use missing::Upload;
#[cfg(feature = "cloud")]
pub use upload::Upload;

#[cfg(feature = "cloud")]
use dataset::fetch;
#[cfg(not(feature = "cloud"))]
use missing::fetch;

/// True if `path` is the address of an object store, such as `s3://bucket/nodes.parquet`.
pub fn is_uri(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains("://"))
}

/// The folder of this host with the dataset, part or partition at `path`: `path` itself, or, if it is the
/// address of an object store, the folder of the cache into which it is fetched.
///
/// # Errors
/// If it cannot be fetched, or this build has no object stores.
pub fn local(path: &Path) -> Result<PathBuf> {
    if is_uri(path) { fetch(path) } else { Ok(path.into()) }
}
