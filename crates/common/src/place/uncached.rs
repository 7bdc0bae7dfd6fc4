//! Reads past the system's cache.

use std::fs::File;
use std::path::Path;

use crc32fast::Hasher;

use super::FileRange;
use crate::checked::read_checked;
use crate::error::{Result, ResultExt};

/// Positions in files and in memory that the disk reads at and to are multiples of this: a block of most disks, and a page.
const BLOCK: usize = 4096;
/// Bytes of the least range for which the cache is a loss.
const LEAST: usize = 1 << 20;

/// Fills a range of the file at `path` past the system's cache, as far as file and memory begin at the same byte of a block;
/// returns its CRC-32. What does not, little files, and all on systems and in folders that know no other way, go through it.
///
/// # Errors
/// If the file ends before, or the disk fails.
pub(super) fn read(path: &Path, range: &mut FileRange<'_>) -> Result<u32> {
    let file = File::open(path).at(path)?;
    let start = range.start;
    let before = (BLOCK - (start % BLOCK as u64) as usize) % BLOCK;
    let aligned = (range.out.as_ptr() as usize + before).is_multiple_of(BLOCK);
    let direct = (aligned && range.out.len() >= LEAST).then(|| open_direct(path)).flatten();
    // A folder may take the way at opening, and refuse it at reading.
    let direct = direct.filter(|direct| {
        let block = &mut range.out[before..before + BLOCK];
        read_checked(direct, path, start + before as u64, block).is_ok()
    });
    let Some(direct) = direct else { return read_checked(&file, path, start, range.out) };
    let blocks = (range.out.len() - before) / BLOCK * BLOCK;
    let (first, rest) = range.out.split_at_mut(before);
    let (middle, last) = rest.split_at_mut(blocks);
    let mut crc = Hasher::new();
    let mut at = start;
    for (file, out) in [(&file, first), (&direct, middle), (&file, last)] {
        let piece = read_checked(file, path, at, out)?;
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
        let dirs = [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")];
        assert!(dirs[0].is_ok());
        for dir in dirs.into_iter().flatten() {
            let bytes: Vec<u8> =
                (0..(9 << 20) + 77_u32).map(|i| (i.wrapping_mul(i) >> 8) as u8).collect();
            std::fs::write(dir.path().join("a"), &bytes).unwrap();
            let path = dir.path().join("a");
            let spare = Arc::new(SparePages::default());
            let len = bytes.len();
            for (start, end) in [(0, len), (128, len), (128, len - 3), (8192, 4 << 20), (5, 50)] {
                // At the same byte of a page as in the file, and not.
                for shift in [0, 1] {
                    let mut pages = spare.take(len + shift).unwrap();
                    let out = &mut pages[start + shift..end + shift];
                    let found = read(&path, &mut FileRange { file: "a", start: start as u64, out });
                    assert_eq!(found.unwrap(), crc32fast::hash(&bytes[start..end]));
                    assert!(
                        pages[start + shift..end + shift] == bytes[start..end],
                        "{start}..{end}"
                    );
                }
            }
            let mut pages = spare.take(len + 1).unwrap();
            let mut range = FileRange { file: "a", start: 0, out: &mut pages };
            let error = read(&path, &mut range).unwrap_err();
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        }
    }
}
