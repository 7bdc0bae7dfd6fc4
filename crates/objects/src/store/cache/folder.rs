//! Folders of the cache, whatever they are fetched from.

use std::path::{Path, PathBuf};

use gnarl_common::staging::Staging;
use gnarl_common::{Result, ResultExt};

use super::room::make_room;
use super::settings::CacheSettings;
use super::usage::Usage;

/// A folder that is to be in the cache.
#[derive(Debug, Clone, Copy)]
pub struct CachedFolder<'a> {
    /// The address that it is fetched from, for messages.
    pub address: &'a str,
    /// Its name: ends with `-` and 16 hexadecimal digits, which differ between contents.
    pub name: &'a str,
    /// A file that it has when it is whole.
    pub marker: &'a str,
    /// Bytes of all its files.
    pub bytes: u64,
}

impl CachedFolder<'_> {
    /// Path of the folder, filled by `download` unless the cache has it: whole or not at all. It is kept for as long as the
    /// process lives, and after that until room is needed.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Limit`] if the files do not fit in the cache; the errors of `download`.
    pub fn fetch(
        &self,
        settings: &CacheSettings,
        download: impl Fn(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let root = &settings.folder;
        std::fs::create_dir_all(root).at(root)?;
        let folder = root.join(self.name);
        loop {
            // Before the folder is looked for: what is in use is not removed.
            let usage = Usage::begin(root, self.name)?;
            if folder.join(self.marker).exists() {
                usage.keep();
                return Ok(folder);
            }
            drop(usage);
            let _alone = Usage::alone(root, self.name)?;
            // Another process may have fetched it meanwhile.
            if !folder.join(self.marker).exists() {
                make_room(self.address, self.bytes, settings)?;
                let staging = Staging::create(&folder, self.marker)?;
                download(staging.path())?;
                staging.commit()?;
            }
        }
    }
}
