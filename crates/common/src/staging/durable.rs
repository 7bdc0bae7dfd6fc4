//! Files and names that survive a power cut.
//!
//! A name is on disk when the folder that has it is synchronized, the content of a file when the file is.

use std::fs::File;
use std::path::Path;

use rayon::prelude::*;

use crate::error::{Result, ResultExt};

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
    let entries = std::fs::read_dir(folder).at(folder)?;
    let entries: Vec<_> = entries.collect::<std::io::Result<_>>().at(folder)?;
    // Disks take many requests at a time.
    entries.into_par_iter().try_for_each(|entry| {
        let path = entry.path();
        let kind = entry.file_type().at(&path)?;
        if kind.is_dir() {
            sync_tree(&path)
        } else if kind.is_file() {
            sync_file(&File::open(&path).at(&path)?, &path)
        } else {
            Ok(())
        }
    })?;
    sync_names(folder)
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
    // Other systems have no such operation on folders.
    #[cfg(unix)]
    File::open(folder).at(folder)?.sync_all().at(folder)?;
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;
    use std::sync::Mutex;

    use super::*;

    /// What was brought to disk, in this order.
    static NOTES: Mutex<Vec<(&str, PathBuf)>> = Mutex::new(Vec::new());

    pub fn note(what: &'static str, path: &Path) {
        NOTES.lock().unwrap().push((what, path.into()));
    }

    /// What was brought to disk of the files and folders in `dir`.
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
    fn a_file_is_on_disk_before_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("a.json");
        super::super::AtomicFile::create(&out).unwrap().commit().unwrap();
        let found = noted(dir.path());
        assert_eq!(found, [("file", out), ("names", dir.path().into())]);
    }
}
