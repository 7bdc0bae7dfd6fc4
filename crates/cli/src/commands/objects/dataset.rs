//! Datasets in object stores, fetched into the cache.

use std::path::{Path, PathBuf};

use gnarl_common::{Context, Result};
use gnarl_graph::MANIFEST;
use gnarl_objects::{CacheSettings, Uri};
use gnarl_partition::PARTITION;

use crate::output::while_busy;

/// The folder of the cache with the dataset at the address `path`.
///
/// # Errors
/// If it cannot be fetched, or does not fit.
pub fn fetch(path: &Path) -> Result<PathBuf> {
    let uri = Uri::parse(&path.to_string_lossy())?;
    let settings = CacheSettings::of_environment()?;
    let markers = [MANIFEST, PARTITION];
    let work = || gnarl_objects::fetch(&uri, &markers, &settings);
    while_busy("fetching", path, work).while_doing(|| format!("fetching {uri}"))
}
