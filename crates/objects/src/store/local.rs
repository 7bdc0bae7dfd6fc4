//! Folders by their paths or their addresses.

use std::path::{Path, PathBuf};

use gnarl_common::{Context, Result};

use super::cache::{CacheSettings, Wanted, fetch};
use crate::uri::{Uri, is_uri};

/// The folder of this host with the files at `path`: `path` itself, or, if it is an address, the folder of the cache
/// into which they are fetched. `markers` are the files of which a folder has one, such as `dataset.json`; of a folder
/// in a store the files `only` are fetched, all of them if there are no such names.
///
/// # Errors
/// As [`fetch`]; [`gnarl_common::Kind::Usage`] if the address is invalid.
pub fn local(path: &Path, markers: &[&str], only: &[&str]) -> Result<PathBuf> {
    if !is_uri(path) {
        return Ok(path.into());
    }
    let uri = Uri::parse(&path.to_string_lossy())?;
    let settings = CacheSettings::of_environment()?;
    fetch(&uri, Wanted { markers, only }, &settings).while_doing(|| format!("fetching {uri}"))
}
