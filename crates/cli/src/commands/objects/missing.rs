//! Builds without object stores.

use std::path::{Path, PathBuf};

use gnarl_common::Result;
use gnarl_objects::refused;

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
