//! Files and names that survive a power cut.
//!
//! A name is on disk when the folder that has it is synchronized, the content of a file when the file is.

use std::fs::File;
#[cfg(unix)]
use std::io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result, ResultExt};

/// Files that are brought to disk at a time.
const THREADS: usize = 8;

/// Brings the content of a file to disk.
///
/// # Errors
/// If the disk is full or fails.
pub fn sync_file(file: &File, path: &Path) -> Result<()> {
    #[cfg(test)]
    tests::note("file", path);
    file.sync_all().at(path)
}

/// Brings a folder to disk with all that is in it.
///
/// # Errors
/// If the disk is full or fails.
pub fn sync_tree(folder: &Path) -> Result<()> {
    let mut folders = vec![folder.to_path_buf()];
    let mut files = Vec::new();
    let mut next = 0;
    while let Some(folder) = folders.get(next).cloned() {
        next += 1;
        for entry in std::fs::read_dir(&folder).at(&folder)? {
            let entry = entry.at(&folder)?;
            let kind = entry.file_type().at(entry.path())?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    let sync = |path: &PathBuf| sync_file(&File::open(path).at(path)?, path);
    // Disks take many requests at a time. Threads of its own: a process that was forked off has no others.
    std::thread::scope(|scope| {
        let shares = files.chunks(files.len().div_ceil(THREADS).max(1));
        let start = |share| {
            let work = move || <[PathBuf]>::iter(share).try_for_each(sync);
            std::thread::Builder::new().spawn_scoped(scope, work)
        };
        let threads: Vec<_> = shares.map(start).collect::<Result<_, _>>().map_err(no_thread)?;
        let ended = threads.into_iter().map(|thread| thread.join());
        let failed = || Error::new(Kind::Io, "a thread that brings files to disk ended");
        ended.into_iter().try_for_each(|ended| ended.unwrap_or_else(|_| Err(failed())))
    })?;
    // A name is there after what it names: folders below others come first.
    folders.iter().rev().try_for_each(|folder| sync_names(folder))
}

/// Makes a folder, with those above it that are missing, and brings their names to disk.
///
/// # Errors
/// If it cannot be made, or the disk fails.
pub fn create_folder(path: &Path) -> Result<()> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    std::fs::create_dir_all(path).at(path)?;
    missing.into_iter().rev().try_for_each(sync_parent)
}

/// Brings the name of a file or folder to disk.
///
/// # Errors
/// If the disk fails.
pub fn sync_parent(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_names(parent.unwrap_or(Path::new(".")))
}

/// Brings the names in a folder to disk.
///
/// # Errors
/// If the disk fails.
fn sync_names(folder: &Path) -> Result<()> {
    #[cfg(test)]
    tests::note("names", folder);
    // Other systems have no such operation on folders, nor do some file systems; some folders may be written to, not read.
    #[cfg(unix)]
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(e) if !matches!(e.kind(), InvalidInput | Unsupported | PermissionDenied) => {
            return Err(e).at(folder);
        }
        _ => {}
    }
    Ok(())
}

fn no_thread(e: std::io::Error) -> Error {
    Error::new(Kind::Limit, format!("cannot start a thread that brings files to disk: {e}"))
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use super::*;

    /// Contents and names that were brought to disk, in this order.
    static NOTES: Mutex<Vec<(&str, PathBuf)>> = Mutex::new(Vec::new());

    pub fn note(what: &'static str, path: &Path) {
        NOTES.lock().unwrap().push((what, path.into()));
    }

    /// Those of the files and folders in `dir`.
    pub fn noted(dir: &Path) -> Vec<(&'static str, PathBuf)> {
        let notes = NOTES.lock().unwrap();
        notes.iter().filter(|(_, path)| path.starts_with(dir)).cloned().collect()
    }

    #[test]
    fn a_tree_is_on_disk_before_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let staging = super::super::Staging::create(&out, "marker").unwrap();
        let tmp = staging.path().to_path_buf();
        std::fs::create_dir(tmp.join("below")).unwrap();
        for name in ["marker", "a", "below/b"] {
            std::fs::write(tmp.join(name), name).unwrap();
        }
        staging.commit().unwrap();
        let noted = noted(dir.path());
        let place = |what: &str, path: PathBuf| {
            noted.iter().position(|(kind, of)| *kind == what && *of == path).unwrap()
        };
        let all: BTreeSet<usize> = [
            place("file", tmp.join("marker")),
            place("file", tmp.join("a")),
            place("file", tmp.join("below/b")),
            place("names", tmp.join("below")),
        ]
        .into();
        let names = place("names", tmp.clone());
        assert!(all.iter().all(|&before| before < names), "{noted:?}");
        assert!(place("file", tmp.join("below/b")) < place("names", tmp.join("below")));
        assert_eq!(place("names", dir.path().into()), noted.len() - 1, "{noted:?}");
    }

    #[test]
    fn a_new_folder_is_on_disk_with_those_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("runs/first");
        create_folder(&out).unwrap();
        let above = [dir.path().to_path_buf(), dir.path().join("runs")];
        assert_eq!(noted(dir.path()), above.map(|folder| ("names", folder)));
        create_folder(&out).unwrap();
        assert_eq!(noted(dir.path()).len(), 2, "it is there");
    }

    #[test]
    fn a_file_is_on_disk_before_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("a.json");
        super::super::AtomicFile::create(&out).unwrap().commit().unwrap();
        let found = noted(dir.path());
        assert_eq!(found, [("file", out), ("names", dir.path().into())]);
    }
}
