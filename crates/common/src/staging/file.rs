//! Files under a temporary name.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::durable;
use super::interrupt::Temporary;
use crate::error::{Error, Result, ResultExt};

/// A file being written beside its place. Dropping it removes it.
#[derive(Debug)]
pub struct AtomicFile {
    out: PathBuf,
    file: File,
    name: Temporary,
}

impl AtomicFile {
    /// Starts a file that will appear at `out`.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn create(out: &Path) -> Result<Self> {
        let Some(name) = out.file_name() else {
            return Err(Error::usage(format!("{}: names no file", out.display())));
        };
        let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        let prefix = format!("{}.tmp-", name.to_string_lossy());
        builder.prefix(&prefix);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let made = || {
            let (file, path) = builder.tempfile_in(parent)?.keep().map_err(|e| e.error)?;
            Ok((path, file))
        };
        let (name, file) = Temporary::file(made).map_err(|e: io::Error| Error::io(out, e))?;
        Ok(Self { out: out.into(), file, name })
    }

    /// Flushes the content to disk and gives the file its name, replacing an existing one.
    ///
    /// # Errors
    /// If the disk is full; an existing file stays.
    pub fn commit(self) -> Result<()> {
        let Self { out, file, name } = self;
        durable::sync_file(&file, &out)?;
        name.commit(|tmp| std::fs::rename(tmp, &out).at(&out))?;
        durable::sync_parent(&out)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.file.seek(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_file_stays_until_the_new_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        std::fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary stays");
    }
}
