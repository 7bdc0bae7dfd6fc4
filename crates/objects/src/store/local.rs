//! Folders by their paths or their addresses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnarl_common::{Context, Folder, Place, Result};

use super::cache::{CacheSettings, Wanted, fetch, fetch_objects, listed};
use super::place::RemotePlace;
use super::remote::Remote;
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
    let only = |name: &str| only.is_empty() || only.contains(&name);
    let wanted = Wanted { markers, only: &only };
    fetch(&uri, wanted, &settings).while_doing(|| format!("fetching {uri}"))
}

/// The folder at `path`, and its files as a [`Place`] that they are read from by ranges. If `path` is an address, the folder
/// is one of the cache, with the files for which `whole` is true.
///
/// # Errors
/// As [`local`].
pub fn place_of(
    path: &Path,
    markers: &[&str],
    whole: &dyn Fn(&str) -> bool,
) -> Result<(PathBuf, Arc<dyn Place>)> {
    if !is_uri(path) {
        return Ok((path.into(), Arc::new(Folder(path.into()))));
    }
    let uri = Uri::parse(&path.to_string_lossy())?;
    let open = || {
        let settings = CacheSettings::of_environment()?;
        let remote = Remote::open(&uri)?;
        let objects = listed(&remote)?;
        let wanted = Wanted { markers, only: whole };
        let folder = fetch_objects(&remote, objects.clone(), wanted, &settings)?;
        let place: Arc<dyn Place> = Arc::new(RemotePlace::new(remote, objects));
        Ok((folder, place))
    };
    open().while_doing(|| format!("opening {uri}"))
}
