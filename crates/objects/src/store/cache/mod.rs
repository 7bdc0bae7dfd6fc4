//! Datasets of object stores, fetched into a folder of this host.

mod folder;
mod room;
mod settings;
mod usage;

use std::path::PathBuf;

use gnarl_common::{Error, Kind, Result, fnv1a};
use object_store::ObjectMeta;
use object_store::path::Path as ObjectPath;

use crate::store::download::download;
use crate::store::listing::list;
use crate::store::remote::Remote;
use crate::store::versions::version_of;
use crate::uri::Uri;
pub use folder::CachedFolder;
pub use settings::CacheSettings;

/// The files of a folder in a store.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Files of which the folder has one, such as `dataset.json`.
    pub markers: &'a [&'a str],
    /// Returns whether the file of a name is fetched.
    pub only: &'a dyn Fn(&str) -> bool,
}

/// The folder of this host with the files `wanted` below `uri`, which are fetched unless it has them: whole or not at
/// all. It is kept for as long as the process lives, and after that until room is needed.
///
/// # Errors
/// [`Kind::Usage`] if no marker is below `uri`; [`Kind::Limit`] if the files do not fit in the cache; if a request
/// fails or misses its deadline, or an object changes meanwhile.
pub fn fetch(uri: &Uri, wanted: Wanted<'_>, settings: &CacheSettings) -> Result<PathBuf> {
    fetch_from(&Remote::open(uri)?, wanted, settings)
}

/// As [`fetch`], of a store that is connected to.
pub(crate) fn fetch_from(
    remote: &Remote,
    wanted: Wanted<'_>,
    settings: &CacheSettings,
) -> Result<PathBuf> {
    fetch_objects(remote, listed(remote)?, wanted, settings)
}

/// The objects below an address by the names of their files, ascending.
///
/// # Errors
/// As [`fetch`].
pub(crate) fn listed(remote: &Remote) -> Result<Vec<(String, ObjectMeta)>> {
    named(remote, remote.wait(list(&remote.target))?)
}

/// As [`fetch`], of `objects` that have been listed.
pub(crate) fn fetch_objects(
    remote: &Remote,
    mut objects: Vec<(String, ObjectMeta)>,
    wanted: Wanted<'_>,
    settings: &CacheSettings,
) -> Result<PathBuf> {
    let Wanted { markers, only } = wanted;
    let uri = remote.uri();
    objects.retain(|(name, _)| only(name));
    let marker = markers.iter().find(|marker| objects.iter().any(|(name, _)| name == *marker));
    let Some(marker) = marker else {
        let message = format!("{uri}: no {} among {} objects", markers.join(" or "), objects.len());
        return Err(Error::usage(message).hint("name the folder itself, and its bucket"));
    };
    let name = format!("{}-{:016x}", uri.name(), key(uri, &objects));
    let bytes = objects.iter().map(|(_, meta)| meta.size).sum();
    let folder = CachedFolder { address: &uri.to_string(), name: &name, marker, bytes };
    folder.fetch(settings, |place| {
        tracing::info!("fetching {uri}: {bytes} bytes in {} files", objects.len());
        remote.wait(download(&remote.target, &objects, place))
    })
}

/// Objects by the names of their files, ascending.
fn named(remote: &Remote, found: Vec<ObjectMeta>) -> Result<Vec<(String, ObjectMeta)>> {
    let prefix: &ObjectPath = &remote.target.path;
    let mut objects = Vec::new();
    for meta in found {
        let Some(parts) = meta.location.prefix_match(prefix) else { continue };
        let parts: Vec<String> = parts.map(|part| part.as_ref().to_string()).collect();
        // The folder itself, which some stores list as an object.
        if parts.is_empty() {
            continue;
        }
        if parts
            .iter()
            .any(|part| matches!(part.as_str(), "" | "." | "..") || part.contains(['\\', '\0']))
        {
            let message = format!("{}: no name of a file: {}", remote.uri(), meta.location);
            return Err(Error::new(Kind::InvalidInput, message));
        }
        objects.push((parts.join("/"), meta));
    }
    objects.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(objects)
}

/// A number of the address and of the versions of all objects.
fn key(uri: &Uri, objects: &[(String, ObjectMeta)]) -> u64 {
    let mut text = uri.to_string();
    for (name, meta) in objects {
        text += &format!("\n{name}\t{}", version_of(meta));
    }
    fnv1a(text.bytes())
}
