//! The folder of a trained run, by its path or by its address in an object store.

use std::path::{Path, PathBuf};

use gnarl_common::Result;
use gnarl_objects::local;

use super::folder::{CLASSES, CONFIG, GRAPH, METRICS, MODEL, PROVENANCE, RELATIONS, SUMMARY};

/// The folder with the settings and the best weights of the run at `path`: the path itself, or, if it is an address in
/// an object store, the folder of the cache into which they are fetched.
///
/// # Errors
/// If they cannot be fetched, or this build has no object stores.
pub fn run_folder(path: &Path) -> Result<PathBuf> {
    local(path, &[CONFIG], &[CONFIG, PROVENANCE, MODEL, SUMMARY])
}

/// The folder with the settings, epochs and results of the run at `path`, as [`run_folder`], without its weights.
///
/// # Errors
/// As [`run_folder`].
pub fn record_folder(path: &Path) -> Result<PathBuf> {
    local(path, &[CONFIG], &[CONFIG, PROVENANCE, GRAPH, METRICS, RELATIONS, CLASSES, SUMMARY])
}
