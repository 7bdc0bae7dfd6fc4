//! Builds without requests to stores: every address is refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnarl_common::{Error, Folder, Place, Result};

use crate::uri::{Uri, is_uri};

/// The folder at `path`, which is no address.
///
/// # Errors
/// If it is one.
pub fn local(path: &Path, _: &[&str], _: &[&str]) -> Result<PathBuf> {
    if is_uri(path) { Err(refused(path)) } else { Ok(path.into()) }
}

/// The folder at `path`, which is no address, and its files.
///
/// # Errors
/// If it is one.
pub fn place_of(
    path: &Path,
    markers: &[&str],
    _: &dyn Fn(&str) -> bool,
) -> Result<(PathBuf, Arc<dyn Place>)> {
    let path = local(path, markers, &[])?;
    Ok((path.clone(), Arc::new(Folder(path))))
}

/// A folder in a store, which cannot be.
///
/// # Errors
/// In any case.
pub fn working_folder(uri: &Uri) -> Result<PathBuf> {
    Err(refused(Path::new(&uri.to_string())))
}

/// A folder that cannot be kept in a store.
#[derive(Debug)]
pub enum Mirror {}

impl Mirror {
    /// As with stores.
    ///
    /// # Errors
    /// In any case.
    pub fn open(uri: &Uri, _: PathBuf) -> Result<Self> {
        Err(refused(Path::new(&uri.to_string())))
    }

    /// As with stores.
    pub fn uri(&self) -> &Uri {
        match *self {}
    }

    /// As with stores.
    pub fn folder(&self) -> &Path {
        match *self {}
    }

    /// As with stores.
    ///
    /// # Errors
    /// Never.
    pub fn names(&self) -> Result<Vec<String>> {
        match *self {}
    }

    /// As with stores.
    ///
    /// # Errors
    /// Never.
    pub fn version(&self, _: &str) -> Result<Option<String>> {
        match *self {}
    }

    /// As with stores.
    ///
    /// # Errors
    /// Never.
    pub fn read(&self, _: &str) -> Result<Option<Vec<u8>>> {
        match *self {}
    }

    /// As with stores.
    ///
    /// # Errors
    /// Never.
    pub fn write(&self, _: &str, _: &[u8]) -> Result<()> {
        match *self {}
    }

    /// As with stores.
    ///
    /// # Errors
    /// Never.
    pub fn pull(&self, _: &[&str]) -> Result<()> {
        match *self {}
    }

    /// As with stores.
    ///
    /// # Errors
    /// Never.
    pub fn push(&self, _: &Path, _: &str) -> Result<()> {
        match *self {}
    }

    /// As with stores.
    ///
    /// # Errors
    /// Never.
    pub fn remove(&self, _: &[&str]) -> Result<()> {
        match *self {}
    }
}

/// The error of a build without requests to stores, for the address `path`.
pub fn refused(path: &Path) -> Error {
    Error::usage(format!("{}: this build lacks object stores", path.display()))
        .hint("build with --features cloud, see docs/inference.md")
}
