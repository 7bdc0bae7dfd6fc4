//! Paths in run files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnarl_common::{Error, Place, Result};
use gnarl_graph::MANIFEST;
use gnarl_objects::{is_uri, local, place_of};
use gnarl_partition::{PARTITION, is_read_whole};

use super::RunConfig;

/// Every key that is a path.
fn paths(config: &mut RunConfig) -> Vec<(&'static str, &mut PathBuf)> {
    let optional = [
        ("partition.path", &mut config.partition.path),
        ("partition.token_file", &mut config.partition.token_file),
        ("partition.certificate", &mut config.partition.certificate),
        ("disaggregated.token_file", &mut config.disaggregated.token_file),
        ("disaggregated.certificate", &mut config.disaggregated.certificate),
        ("disaggregated.key", &mut config.disaggregated.key),
        ("sample.batches", &mut config.sample.batches),
        ("negatives.heads", &mut config.negatives.heads),
        ("negatives.tails", &mut config.negatives.tails),
        ("tensor.spill", &mut config.tensor.spill),
    ];
    let set = optional.into_iter().filter_map(|(key, path)| Some((key, path.as_mut()?)));
    let always =
        [("dataset.path", &mut config.dataset.path), ("output.dir", &mut config.output.dir)];
    always.into_iter().chain(set).collect()
}

/// Replaces a leading `~` by the user's home folder, as a shell would before a program sees it.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] if there is no home folder, or another user's is requested.
pub(super) fn expand_home(config: &mut RunConfig) -> Result<()> {
    for (key, path) in paths(config) {
        *path = home_of(path).map_err(|e| e.context(key))?;
    }
    Ok(())
}

/// The folder of this host with the dataset or the partition at `path`: the path itself, or, if it is an address in an
/// object store, the folder of the cache into which it is fetched.
///
/// # Errors
/// If it cannot be fetched, or this build has no object stores.
pub fn data_folder(path: &Path) -> Result<PathBuf> {
    local(path, &[MANIFEST, PARTITION], &[])
}

/// The folder of the partition at `path`, or, if it is an address in an object store, one of the cache with its manifest alone.
///
/// # Errors
/// As [`data_folder`].
pub fn partition_manifest(path: &Path) -> Result<PathBuf> {
    local(path, &[PARTITION], &[PARTITION])
}

/// The partition at `path` whose parts are brought into memory in turns: the folder, and its files as read by ranges. Of an
/// address in an object store, only the small files are fetched into the cache.
///
/// # Errors
/// As [`data_folder`].
pub fn parts_in_turns(path: &Path) -> Result<(PathBuf, Arc<dyn Place>)> {
    place_of(path, &[PARTITION], &is_read_whole)
}

/// `path` with a leading `~` replaced by the user's home folder.
///
/// # Errors
/// As for a run file's paths.
pub fn home_of(path: &Path) -> Result<PathBuf> {
    let first = path.components().next().map(|first| first.as_os_str().to_string_lossy());
    match first.as_deref() {
        Some("~") => {
            let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
            let home = home.ok_or_else(|| {
                Error::usage(format!("{}: this user has no home folder", path.display()))
                    .hint("write the path out")
            })?;
            Ok(home.join(path.strip_prefix("~").unwrap_or(path)))
        }
        Some(other) if other.starts_with('~') => {
            Err(Error::usage(format!("{}: other users' homes are not looked up", path.display()))
                .hint("write the path out"))
        }
        _ => Ok(path.into()),
    }
}

/// The configuration with absolute paths, independent of the working directory. Addresses in object stores stay.
pub fn absolute(config: &RunConfig) -> RunConfig {
    let mut config = config.clone();
    for (_, path) in paths(&mut config) {
        if is_uri(path) {
            continue;
        }
        // An empty path stands for none.
        if let Ok(full) = std::path::absolute(&*path) {
            *path = full;
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_where_the_shell_says() {
        let home = std::env::home_dir().expect("tests have a home");
        assert_eq!(home_of(Path::new("~/data/g")).unwrap(), home.join("data/g"));
        assert_eq!(home_of(Path::new("~")).unwrap(), home);
        assert_eq!(home_of(Path::new("a/~/b")).unwrap(), Path::new("a/~/b"));
        assert_eq!(home_of(Path::new("~ada/g")).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn kept_paths_do_not_depend_on_the_folder() {
        let mut config = RunConfig::default();
        config.dataset.path = "data/g".into();
        config.partition.path = Some("parts".into());
        let kept = absolute(&config);
        assert!(kept.dataset.path.is_absolute() && kept.output.dir.is_absolute());
        assert!(kept.partition.path.is_some_and(|path| path.is_absolute()));
        config.dataset.path = "s3://bucket/g".into();
        assert_eq!(absolute(&config).dataset.path, Path::new("s3://bucket/g"));
        config.dataset.path = PathBuf::new();
        assert_eq!(absolute(&config).dataset.path, Path::new(""));
    }
}
