//! Folders whose files are kept in a store.

use std::path::{Path as LocalPath, PathBuf};

use bytes::Bytes;
use gnarl_common::{Result, ResultExt, fnv1a};
use object_store::{Error as StoreError, ObjectMeta, ObjectStoreExt};

use super::cache::CacheSettings;
use super::download::download;
use super::failure::within;
use super::listing::list;
use super::remote::Remote;
use super::target::Target;
use super::upload::{object, removal};
use super::versions::version_of;
use crate::uri::Uri;

/// The folder of the cache with one folder per address.
const FOLDERS: &str = "folders";
/// Most attempts to fetch objects while another process replaces them.
const ATTEMPTS: usize = 10;

/// The folder of this host for files that are kept at `uri`: the same one in every process.
///
/// # Errors
/// If this user has no folder for caches.
pub fn working_folder(uri: &Uri) -> Result<PathBuf> {
    let settings = CacheSettings::of_environment()?;
    let name = format!("{}-{:016x}", uri.name(), fnv1a(uri.to_string().bytes()));
    Ok(settings.folder.join(FOLDERS).join(name))
}

/// A folder of this host whose files are kept in a store, below an address. Nothing is transferred but by the methods
/// here, which block the thread.
#[derive(Debug)]
pub struct Mirror {
    pub(super) remote: Remote,
    folder: PathBuf,
}

impl Mirror {
    /// The files at `uri`, and their folder on this host. No request is made.
    ///
    /// # Errors
    /// If a setting of the environment is invalid.
    pub fn open(uri: &Uri, folder: PathBuf) -> Result<Self> {
        Ok(Self { remote: Remote::open(uri)?, folder })
    }

    /// As [`Self::open`], of a store that is connected to.
    #[cfg(test)]
    pub(crate) fn of(remote: Remote, folder: PathBuf) -> Self {
        Self { remote, folder }
    }

    /// The address.
    pub fn uri(&self) -> &Uri {
        self.remote.uri()
    }

    /// The folder.
    pub fn folder(&self) -> &LocalPath {
        &self.folder
    }

    /// Names of the objects below the address, those of folders below it with slashes; ascending.
    ///
    /// # Errors
    /// If a request fails or misses its deadline.
    pub fn names(&self) -> Result<Vec<String>> {
        let path = &self.target().path;
        let found = self.remote.wait(list(self.target()))?;
        let mut names: Vec<String> = found
            .iter()
            .filter_map(|meta| {
                let parts: Vec<_> = meta.location.prefix_match(path)?.collect();
                let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
                (!parts.is_empty()).then(|| parts.join("/"))
            })
            .collect();
        names.sort();
        Ok(names)
    }

    /// A text that differs between versions of the object `name`; none if there is no such object.
    ///
    /// # Errors
    /// As [`Self::names`].
    pub fn version(&self, name: &str) -> Result<Option<String>> {
        let found = self.remote.wait(head(&self.target().child(name)))?;
        Ok(found.map(|meta| version_of(&meta)))
    }

    /// The content of the object `name`; none if there is no such object.
    ///
    /// # Errors
    /// As [`Self::names`].
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let target = self.target().child(name);
        let request = async {
            match target.store.get(&target.path).await {
                Ok(found) => found.bytes().await.map(|bytes| Some(bytes.into())),
                Err(StoreError::NotFound { .. }) => Ok(None),
                Err(e) => Err(e),
            }
        };
        self.remote.wait(within(target.limits.deadline, &target.uri, "reading", request))
    }

    /// Replaces the object `name` by `content`.
    ///
    /// # Errors
    /// As [`Self::names`].
    pub fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        let target = self.target().child(name);
        let content = Bytes::copy_from_slice(content);
        let request = async { target.store.put(&target.path, content.into()).await.map(drop) };
        self.remote.wait(within(target.limits.deadline, &target.uri, "uploading", request))
    }

    /// Makes the files `names` of the folder, which exists, those of the store; removes those that the store lacks. A
    /// file is no older than those after it in `names` refer to, if they are uploaded in this order: versions are looked
    /// up from the last to the first, and all fetched anew if one changes meanwhile.
    ///
    /// # Errors
    /// As [`Self::names`]; if a file cannot be written, or objects change again and again.
    pub fn pull(&self, names: &[&str]) -> Result<()> {
        let mut found = self.versions(names)?;
        for _ in 1..ATTEMPTS {
            let fetched = self.remote.wait(download(self.target(), &found, &self.folder));
            if let Err(e) = fetched {
                let now = self.versions(names)?;
                if now == found {
                    return Err(e);
                }
                found = now;
                continue;
            }
            for name in names.iter().filter(|name| !found.iter().any(|(other, _)| other == *name)) {
                let path = self.folder.join(name);
                if path.exists() {
                    std::fs::remove_file(&path).at(&path)?;
                }
            }
            return Ok(());
        }
        self.remote.wait(download(self.target(), &found, &self.folder))
    }

    /// Those of the objects `names` that exist, the last first.
    fn versions(&self, names: &[&str]) -> Result<Vec<(String, ObjectMeta)>> {
        let mut found = Vec::new();
        for name in names.iter().rev() {
            let meta = self.remote.wait(head(&self.target().child(name)))?;
            found.extend(meta.map(|meta| (name.to_string(), meta)));
        }
        Ok(found)
    }

    /// Replaces the object `name` by the file at `path`: whole, or it stays as it was.
    ///
    /// # Errors
    /// As [`Self::names`]; if the file cannot be read.
    pub fn push(&self, path: &LocalPath, name: &str) -> Result<()> {
        self.remote.wait(object::upload(&self.target().child(name), path, true))
    }

    /// Removes the objects `names`, of which some need not be there.
    ///
    /// # Errors
    /// As [`Self::names`].
    pub fn remove(&self, names: &[&str]) -> Result<()> {
        let target = self.target();
        let paths = names.iter().map(|name| target.child(name).path).collect();
        self.remote.wait(removal::remove(target, paths))
    }

    fn target(&self) -> &Target {
        &self.remote.target
    }
}

async fn head(target: &Target) -> Result<Option<ObjectMeta>> {
    let request = async {
        match target.store.head(&target.path).await {
            Ok(meta) => Ok(Some(meta)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(e) => Err(e),
        }
    };
    within(target.limits.deadline, &target.uri, "looking for the object", request).await
}
