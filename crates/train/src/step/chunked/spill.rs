//! Unnamed files for what does not fit into memory.

use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gnarl_common::{Result, ResultExt};

/// A folder of unnamed files, which vanish with the process.
///
/// A step makes and drops some files for each of its stages. Files that were dropped are emptied and
/// used again: ext4 searches long for an inode where many were freed a moment ago.
#[derive(Debug, Clone)]
pub(super) struct Spill(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    dir: PathBuf,
    empty: Mutex<Vec<File>>,
}

impl Spill {
    /// Files in `dir`.
    pub fn new(dir: PathBuf) -> Self {
        Self(Arc::new(Folder { dir, empty: Mutex::default() }))
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// A file of so many bytes, all zero.
    ///
    /// # Errors
    /// If the file cannot be created or extended.
    pub fn file(&self, bytes: u64) -> Result<SpillFile> {
        let free = self.0.empty.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let file = match free {
            Some(file) => file,
            None => tempfile::tempfile_in(self.dir()).at(self.dir())?,
        };
        file.set_len(bytes).at(self.dir())?;
        Ok(SpillFile { file: Some(file), spill: self.clone() })
    }
}

/// A file in use.
pub(super) struct SpillFile {
    /// Some until dropped.
    file: Option<File>,
    spill: Spill,
}

impl SpillFile {
    /// The folder of the file, for errors.
    pub fn dir(&self) -> &Path {
        self.spill.dir()
    }
}

impl Deref for SpillFile {
    type Target = File;

    fn deref(&self) -> &File {
        self.file.as_ref().expect("a file until dropped")
    }
}

impl DerefMut for SpillFile {
    fn deref_mut(&mut self) -> &mut File {
        self.file.as_mut().expect("a file until dropped")
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        // Gives back disk and page cache; a file that cannot be emptied is closed, which does too.
        if let Some(file) = self.file.take().filter(|file| file.set_len(0).is_ok()) {
            self.spill.0.empty.lock().unwrap_or_else(PoisonError::into_inner).push(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_file_that_was_dropped_is_used_again_without_its_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let spill = Spill::new(dir.path().into());
        spill.file(4).unwrap().write_all(&[1; 4]).unwrap();
        assert_eq!(spill.0.empty.lock().unwrap().len(), 1);
        let mut file = spill.file(8).unwrap();
        assert_eq!(spill.0.empty.lock().unwrap().len(), 0);
        let mut bytes = vec![];
        std::io::Seek::rewind(&mut *file).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [0; 8]);
    }
}
