//! The values of a file with their checksum.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crc32fast::Hasher as Crc;

use crate::error::{Error, Result, ResultExt};

/// Bytes that are read and hashed at a time.
pub(super) const PIECE: u64 = 1 << 20;

/// The values of a file, and the checksum they had when they were written. They are read again to be compared: pages of a
/// mapping would count as memory of this process.
#[derive(Debug, Clone)]
pub struct Sealed {
    path: PathBuf,
    values: Range<u64>,
    crc32: u32,
    opened: Option<Stamp>,
}

/// State of a file, to tell it from another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Stamp {
    /// Device and number of the file itself, whatever its name; 0 where systems have none.
    inode: (u64, u64),
    /// When it was made: a new file may have the number of one that was removed.
    born: Option<SystemTime>,
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// That of the file at `path`, unless there is none.
    fn of(path: &Path) -> Option<Self> {
        let about = std::fs::metadata(path).ok()?;
        #[cfg(unix)]
        let inode = {
            use std::os::unix::fs::MetadataExt;
            (about.dev(), about.ino())
        };
        #[cfg(not(unix))]
        let inode = (0, 0);
        Some(Self {
            inode,
            born: about.created().ok(),
            length: about.len(),
            modified: about.modified().ok(),
        })
    }
}

impl Sealed {
    /// The bytes `values` of the file at `path`, of which `crc32` is the CRC-32.
    pub fn new(path: PathBuf, values: Range<u64>, crc32: u32) -> Self {
        let opened = Stamp::of(&path);
        Self { path, values, crc32, opened }
    }

    /// These values of the file as it is now.
    pub(super) fn renewed(&self) -> Self {
        Self { opened: Stamp::of(&self.path), ..self.clone() }
    }

    /// Bytes of the values.
    pub fn num_bytes(&self) -> u64 {
        self.values.end - self.values.start
    }

    /// A digest of what the values are and should be; another one when the file is written again.
    pub(super) fn digest(&self) -> u64 {
        let mut digest = DefaultHasher::new();
        (&self.path, &self.values, self.crc32, &self.opened).hash(&mut digest);
        digest.finish()
    }

    /// Compares the checksum, by threads of its own: one of a pool that waited here could be the one that is waited for.
    ///
    /// # Errors
    /// If it differs, or the file cannot be read.
    pub(super) fn check(&self) -> Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let step = self.num_bytes().div_ceil(cores).max(4 * PIECE);
        let starts = (0..self.num_bytes()).step_by(step as usize);
        let shares: Vec<Range<u64>> =
            starts.map(|start| start..(start + step).min(self.num_bytes())).collect();
        if let [only] = &shares[..] {
            return self.compare(self.hash(only)?);
        }
        let hashes: Vec<Result<Crc>> = std::thread::scope(|scope| {
            let started: Vec<_> = (shares.iter())
                .map(|share| std::thread::Builder::new().spawn_scoped(scope, || self.hash(share)))
                .collect();
            let all = started.into_iter().zip(&shares);
            // Without a thread, this one does it.
            all.map(|(thread, share)| {
                let hashed = thread.ok().and_then(|thread| thread.join().ok());
                hashed.unwrap_or_else(|| self.hash(share))
            })
            .collect()
        });
        let mut crc = Crc::new();
        for share in hashes {
            crc.combine(&share?);
        }
        self.compare(crc)
    }

    /// The checksum of some of the values, counted from the first.
    fn hash(&self, share: &Range<u64>) -> Result<Crc> {
        let mut reader = self.reader()?;
        reader.skip(share.start)?;
        let mut crc = Crc::new();
        let mut left = share.end - share.start;
        while left > 0 {
            left -= reader.hash_piece(left, &mut crc)?;
        }
        Ok(crc)
    }

    /// Reads the values from the first on.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn reader(&self) -> Result<Reader<'_>> {
        let mut file = File::open(&self.path).at(&self.path)?;
        file.seek(SeekFrom::Start(self.values.start)).at(&self.path)?;
        let buffer = vec![0; PIECE.min(self.num_bytes()) as usize];
        Ok(Reader { sealed: self, file, buffer })
    }

    /// Compares a checksum that was computed of all values.
    ///
    /// # Errors
    /// If it differs.
    pub(super) fn compare(&self, found: Crc) -> Result<()> {
        // Whoever makes a file makes its checksum: the readers behind it are fuzzed.
        if cfg!(fuzzing) || found.finalize() == self.crc32 {
            return Ok(());
        }
        Err(damaged(&self.path))
    }

    /// Returns whether the file is still the one that was opened, changed or not: others replace or remove it.
    pub(super) fn is_there(&self) -> bool {
        let now = Stamp::of(&self.path);
        match (&now, &self.opened) {
            (Some(now), Some(opened)) if cfg!(unix) && now.born.is_some() => {
                (now.inode, now.born) == (opened.inode, opened.born)
            }
            // Without the time a changed file may be another one.
            _ => now == self.opened,
        }
    }

    /// Returns whether the file that was opened is still at its path, while it is mapped: no other one has its number as long
    /// as it is, and so this holds where systems know no time at which files were made.
    pub(super) fn is_same(&self) -> bool {
        let (Some(now), Some(opened)) = (Stamp::of(&self.path), &self.opened) else {
            return false;
        };
        let births = now.born.zip(opened.born);
        cfg!(unix) && now.inode == opened.inode && births.is_none_or(|(now, then)| now == then)
    }

    /// Returns whether the file was written to since it was opened, under its mapping.
    pub(super) fn is_changed(&self) -> bool {
        self.is_same() && Stamp::of(&self.path) != self.opened
    }
}

/// Reads values piece by piece.
pub(super) struct Reader<'a> {
    sealed: &'a Sealed,
    file: File,
    buffer: Vec<u8>,
}

impl Reader<'_> {
    fn skip(&mut self, bytes: u64) -> Result<()> {
        self.file.seek_relative(bytes as i64).at(&self.sealed.path)
    }

    /// Hashes a piece of at most `most` bytes; their number.
    ///
    /// # Errors
    /// If the file cannot be read, or ends.
    pub fn hash_piece(&mut self, most: u64, crc: &mut Crc) -> Result<u64> {
        let length = most.min(self.buffer.len() as u64) as usize;
        self.file.read_exact(&mut self.buffer[..length]).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => shortened(&self.sealed.path),
            _ => Error::io(&self.sealed.path, e),
        })?;
        crc.update(&self.buffer[..length]);
        Ok(length as u64)
    }
}

/// The error of a file whose values are not those that were written.
pub fn damaged(path: &Path) -> Error {
    Error::invalid(format!("{}: checksum differs from its manifest", path.display()))
        .hint("the file was damaged or changed after it was written")
}

fn shortened(path: &Path) -> Error {
    Error::invalid(format!("{}: the file became shorter than its manifest says", path.display()))
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn changes_are_seen_where_systems_know_no_births_of_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("values");
        std::fs::write(&path, b"values").unwrap();
        let mut sealed = Sealed::new(path.clone(), 0..6, 0);
        let opened = sealed.opened.as_mut().unwrap();
        opened.born = None;
        opened.modified = Some(SystemTime::UNIX_EPOCH);
        assert!(sealed.is_changed());
        std::fs::write(dir.path().join("new"), b"values").unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        assert!(!sealed.is_changed(), "it is another file");
        let renewed = sealed.renewed();
        assert!(!renewed.is_changed());
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
        assert!(renewed.is_changed() && renewed.is_there() && !sealed.is_changed());
    }
}
