//! The place of the table: a path of this host, or an object store.

use std::path::{Path, PathBuf};

use gnarl_common::Result;
use gnarl_infer::export::{self, Claim, Column, Written};
use gnarl_objects::is_uri;

use crate::commands::objects::Upload;

/// Where the table is written, and where it goes from there.
pub(super) struct Destination {
    out: PathBuf,
    force: bool,
    upload: Option<Upload>,
}

impl Destination {
    /// The place `out`: a path, or the address of an object store. What is there is replaced if `force` is set.
    ///
    /// # Errors
    /// If it is the address of no object, or this build has no object stores.
    pub fn of(out: &Path, force: bool) -> Result<Self> {
        let upload = is_uri(out).then(|| Upload::prepare(out)).transpose()?;
        Ok(Self { out: out.into(), force, upload })
    }

    /// Claims the place of a table of `columns`.
    ///
    /// # Errors
    /// Those of [`export::claim`]; if an object is in the way, or the store cannot be reached.
    pub fn claim(&self, columns: &[Column]) -> Result<Claim> {
        let Some(upload) = &self.upload else {
            return export::claim(&self.out, columns, self.force);
        };
        let claim = export::claim(&upload.local(), columns, false)?;
        upload.check(claim.files(), self.force)?;
        Ok(claim)
    }

    /// Brings the written table to its place: its names there.
    ///
    /// # Errors
    /// If it cannot be uploaded.
    pub fn deliver(self, written: &Written) -> Result<Vec<String>> {
        match self.upload {
            Some(upload) => upload.finish(&written.files, self.force),
            None => Ok(written.files.iter().map(|file| file.display().to_string()).collect()),
        }
    }
}
