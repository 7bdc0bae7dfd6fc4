//! Builds without object stores.

use std::path::{Path, PathBuf};

use gnarl_common::{Error, Result};

/// An upload that cannot be prepared.
pub enum Upload {}

impl Upload {
    /// As with object stores.
    ///
    /// # Errors
    /// In any case.
    pub fn prepare(out: &Path) -> Result<Self> {
        Err(refused(out))
    }

    /// As with object stores.
    pub fn local(&self) -> PathBuf {
        match *self {}
    }

    /// As with object stores.
    ///
    /// # Errors
    /// Never.
    pub fn check(&self, _: &[PathBuf], _: bool) -> Result<()> {
        match *self {}
    }

    /// As with object stores.
    ///
    /// # Errors
    /// Never.
    pub fn finish(self, _: &[PathBuf], _: bool) -> Result<Vec<String>> {
        match self {}
    }
}

/// The folder of a dataset that cannot be fetched.
///
/// # Errors
/// In any case.
pub fn fetch(path: &Path) -> Result<PathBuf> {
    Err(refused(path))
}

fn refused(path: &Path) -> Error {
    Error::usage(format!("{}: this build lacks object stores", path.display()))
        .hint("build with --features cloud, see docs/inference.md")
}
