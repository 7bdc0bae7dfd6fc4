//! Reads of whole files and ranges into memory, with their checksum.

use std::fs::File;
use std::path::Path;

use rayon::prelude::*;

use crate::error::{Result, ResultExt};

/// Bytes that one task reads and hashes.
const PIECE: usize = 4 << 20;

/// Fills `out` with the bytes of `file` from `start` on, by all threads; returns their CRC-32. Errors name `path`.
///
/// # Errors
/// If the file ends before, or the disk fails.
pub fn read_checked(file: &File, path: &Path, start: u64, out: &mut [u8]) -> Result<u32> {
    let read = |(number, piece): (usize, &mut [u8])| {
        read_at(file, start + (number * PIECE) as u64, piece).at(path)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(piece);
        Ok(crc)
    };
    let pieces = out.par_chunks_mut(PIECE).enumerate().map(read).collect::<Result<Vec<_>>>()?;
    let mut crc = crc32fast::Hasher::new();
    pieces.iter().for_each(|piece| crc.combine(piece));
    Ok(crc.finalize())
}

#[cfg(unix)]
fn read_at(file: &File, start: u64, out: &mut [u8]) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, start)
}

#[cfg(not(unix))]
fn read_at(file: &File, start: u64, out: &mut [u8]) -> std::io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    // A file of its own has a position of its own.
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(out)
}

/// Reads bytes of a file from `start` on, fewer than `out` has where it ends or the system gives fewer; their number.
#[cfg(unix)]
pub(crate) fn read_some_at(file: &File, start: u64, out: &mut [u8]) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, start)
}

/// Reads bytes of a file from `start` on, fewer than `out` has where it ends or the system gives fewer; their number.
#[cfg(windows)]
pub(crate) fn read_some_at(file: &File, start: u64, out: &mut [u8]) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_come_with_their_checksum() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let bytes: Vec<u8> = (0..2 * PIECE + 77).map(|i| (i * i % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = File::open(&path).unwrap();
        for range in [0..bytes.len(), 5..PIECE + 6, 9..9] {
            let mut out = vec![0; range.len()];
            let crc = read_checked(&file, &path, range.start as u64, &mut out).unwrap();
            assert_eq!(crc, crc32fast::hash(&bytes[range.clone()]));
            assert!(out == bytes[range]);
        }
        let mut out = vec![0; 8];
        let error = read_checked(&file, &path, bytes.len() as u64 - 7, &mut out).unwrap_err();
        assert!(error.to_string().contains("/a"), "{error}");
    }
}
