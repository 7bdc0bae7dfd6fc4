//! The refusal of partitioned datasets, by a module without clients of servers.

use std::path::Path;

use gnarl_common::{Error, Result};
use gnarl_loader::LoaderGraph;

use super::Parts;

fn refusal(what: &str) -> Error {
    Error::usage(format!("{what}: this module was built without the feature 'wheel'"))
        .hint("a module that cargo builds has it by --features wheel")
}

/// Refuses to open the partition of some servers.
pub fn connect(parts: &Parts, _batches: bool) -> Result<LoaderGraph> {
    Err(refusal(&parts.servers.join(", ")))
}

/// Refuses to open the partition in a folder.
pub fn open(path: &Path, _parts: &Parts, _batches: bool) -> Result<LoaderGraph> {
    Err(refusal(&path.display().to_string()))
}
