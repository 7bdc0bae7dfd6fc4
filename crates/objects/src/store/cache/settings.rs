//! The place and the size of the cache.

use std::path::PathBuf;

use bytesize::ByteSize;
use gnarl_common::{Error, Result};

/// The variable that names the folder.
const FOLDER: &str = "GNARL_CACHE";
/// The variable with the most bytes.
const BYTES: &str = "GNARL_CACHE_BYTES";

/// The place and the size of the cache.
#[derive(Debug, Clone)]
pub struct CacheSettings {
    /// The folder that has a folder per dataset, and nothing else.
    pub folder: PathBuf,
    /// The most bytes of all datasets.
    pub bytes: u64,
}

impl CacheSettings {
    /// The settings of the environment: `GNARL_CACHE`, by default `gnarl` in the user's folder for caches; and
    /// `GNARL_CACHE_BYTES`, such as `100GiB`, by default 64 GiB.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the size is none, or this user has no folder for caches.
    pub fn of_environment() -> Result<Self> {
        let folder = match var(FOLDER) {
            Some(folder) => folder.into(),
            None => user_caches()?.join("gnarl"),
        };
        let bytes = match var(BYTES) {
            Some(text) => text.parse::<ByteSize>().map_err(|_| {
                Error::usage(format!("invalid {BYTES} '{text}': expected a size such as 100GiB"))
            })?,
            None => ByteSize::gib(64),
        };
        Ok(Self { folder, bytes: bytes.as_u64() })
    }
}

fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The user's folder for caches.
fn user_caches() -> Result<PathBuf> {
    if let Some(folder) = var("XDG_CACHE_HOME") {
        return Ok(folder.into());
    }
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let home = home.ok_or_else(|| {
        Error::usage("this user has no home folder for a cache").hint(format!("set {FOLDER}"))
    })?;
    Ok(home.join(if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" }))
}
