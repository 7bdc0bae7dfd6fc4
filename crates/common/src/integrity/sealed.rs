//! The values of a file with their checksum.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;

use crate::error::{Error, Result};

/// Bytes that are hashed at a time.
pub(super) const PIECE: usize = 4 << 20;

/// The values of a mapped file, and the checksum they had when they were written.
#[derive(Debug, Clone)]
pub struct Sealed {
    /// Name in errors.
    pub path: PathBuf,
    /// The whole file.
    pub map: Arc<Mmap>,
    /// The bytes of the values.
    pub values: Range<usize>,
    /// CRC-32 of them.
    pub crc32: u32,
}

impl Sealed {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.map[self.values.clone()]
    }

    /// Compares the checksum, by all threads.
    ///
    /// # Errors
    /// If it differs.
    pub(super) fn check(&self) -> Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let bytes = self.bytes();
        let shares: Vec<&[u8]> = bytes.chunks(bytes.len().div_ceil(cores).max(PIECE)).collect();
        let hash = |share: &[u8]| {
            let mut crc = crc32fast::Hasher::new();
            crc.update(share);
            crc
        };
        // Threads of its own: one of a pool that waited here could be the one that is waited for.
        let hashes: Vec<crc32fast::Hasher> = std::thread::scope(|scope| {
            let started: Vec<_> = (shares.iter())
                .map(|share| std::thread::Builder::new().spawn_scoped(scope, || hash(share)))
                .collect();
            let all = started.into_iter().zip(&shares);
            // Without a thread, this one does it.
            all.map(|(thread, share)| {
                let hashed = thread.ok().and_then(|thread| thread.join().ok());
                hashed.unwrap_or_else(|| hash(share))
            })
            .collect()
        });
        let mut crc = crc32fast::Hasher::new();
        hashes.iter().for_each(|share| crc.combine(share));
        self.compare(crc.finalize())
    }

    pub(super) fn compare(&self, found: u32) -> Result<()> {
        if found == self.crc32 { Ok(()) } else { Err(damaged(&self.path)) }
    }

    /// A digest of what the values are and should be; another one when the file is written again.
    pub(super) fn digest(&self) -> u64 {
        let mut digest = DefaultHasher::new();
        (&self.path, &self.values, self.crc32).hash(&mut digest);
        if let Ok(about) = std::fs::metadata(&self.path) {
            (about.len(), about.modified().ok()).hash(&mut digest);
            #[cfg(unix)]
            std::os::unix::fs::MetadataExt::ino(&about).hash(&mut digest);
        }
        digest.finish()
    }
}

/// The error of a file whose values are not those that were written.
pub fn damaged(path: &Path) -> Error {
    Error::invalid(format!("{}: checksum differs from its manifest", path.display()))
        .hint("the file was damaged or changed after it was written")
}
