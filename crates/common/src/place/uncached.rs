//! Reads past the system's cache.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use crc32fast::Hasher;
use rayon::prelude::*;

use super::{FileRange, Folder, Place};
use crate::checked::read_checked;
use crate::error::{Result, ResultExt};

/// Positions in files and in memory that the disk reads at and to are multiples of this: a block of most disks, and a page.
const BLOCK: usize = 4096;
/// Below so many bytes the cache is no loss.
const LEAST: usize = 1 << 20;

/// A folder whose files are read past the system's cache, as far as they and their memory begin at the same byte of a block;
/// what does not, little files, and all of them on systems and in folders that know no other way, go through it.
///
/// Of those who read more than memory holds, the cache keeps nothing that is read again: it takes memory, and a copy and the search for
/// pages to give up for each page (for parts of a graph three times as large as memory, a fifth of the time to read them).
#[derive(Debug, Clone)]
pub(super) struct UncachedFolder(pub Folder);

impl Place for UncachedFolder {
    fn path_of(&self, file: &str) -> String {
        self.0.path_of(file)
    }

    fn size(&self, file: &str) -> Result<u64> {
        self.0.size(file)
    }

    fn read(&self, ranges: &mut [FileRange<'_>]) -> Result<Vec<u32>> {
        ranges.par_iter_mut().map(|range| read(&self.0.0.join(range.file), range)).collect()
    }

    /// Of use for what goes through the cache.
    fn expect(&self, file: &str, bytes: Range<u64>) {
        self.0.expect(file, bytes);
    }
}

/// Fills a range of the file at `path`; returns its CRC-32.
fn read(path: &Path, range: &mut FileRange<'_>) -> Result<u32> {
    let file = File::open(path).at(path)?;
    let start = range.start;
    let before = (BLOCK - (start % BLOCK as u64) as usize) % BLOCK;
    let aligned = (range.out.as_ptr() as usize + before).is_multiple_of(BLOCK);
    let direct = (aligned && range.out.len() >= LEAST).then(|| open_direct(path)).flatten();
    let Some(direct) = direct else { return read_checked(&file, path, start, range.out) };
    let blocks = (range.out.len() - before) / BLOCK * BLOCK;
    let (first, rest) = range.out.split_at_mut(before);
    let (middle, last) = rest.split_at_mut(blocks);
    let mut crc = Hasher::new();
    let mut at = start;
    for (file, out) in [(&file, first), (&direct, middle), (&file, last)] {
        let piece = read_checked(file, path, at, out)
            // A folder may take the way at opening, and refuse it at reading.
            .or_else(|_| read_checked(&File::open(path).at(path)?, path, at, out))?;
        crc.combine(&Hasher::new_with_initial_len(piece, out.len() as u64));
        at += out.len() as u64;
    }
    Ok(crc.finalize())
}

/// Opens a file to be read past the cache, where the system and the folder can.
#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;

    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    File::options().read(true).custom_flags(flags).open(path).ok()
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_path: &Path) -> Option<File> {
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::SparePages;

    #[test]
    fn files_read_past_the_cache_are_the_same() {
        // Folders in memory and folders on a disk differ in what they can.
        for dir in [tempfile::tempdir(), tempfile::tempdir_in(".")] {
            let dir = dir.unwrap();
            let bytes: Vec<u8> =
                (0..(9 << 20) + 77_u32).map(|i| (i.wrapping_mul(i) >> 8) as u8).collect();
            std::fs::write(dir.path().join("a"), &bytes).unwrap();
            let place = Folder(dir.path().into()).uncached().unwrap();
            assert_eq!(place.size("a").unwrap(), bytes.len() as u64);
            let spare = Arc::new(SparePages::default());
            let len = bytes.len();
            for (start, end) in [(0, len), (128, len), (128, len - 3), (8192, 4 << 20), (5, 50)] {
                // At the same byte of a page as in the file, and not.
                for shift in [0, 1] {
                    let mut pages = spare.take(len + shift).unwrap();
                    let out = &mut pages[start + shift..end + shift];
                    let found =
                        place.read(&mut [FileRange { file: "a", start: start as u64, out }]);
                    assert_eq!(found.unwrap(), [crc32fast::hash(&bytes[start..end])]);
                    assert!(
                        pages[start + shift..end + shift] == bytes[start..end],
                        "{start}..{end}"
                    );
                }
            }
            let mut pages = spare.take(len + 1).unwrap();
            let range = FileRange { file: "a", start: 0, out: &mut pages };
            let error = place.read(&mut [range]).unwrap_err();
            assert!(error.to_string().contains(&place.path_of("a")), "{error}");
        }
    }
}
