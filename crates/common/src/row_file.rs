//! Rows of a file at random places, many at a time, past the system's cache.
//!
//! A mapped file comes by pages: a row of 512 bytes takes 4,096 of the disk and of memory, and where the file exceeds memory
//! each new page costs a search for one to give up, which may be one of the lists that every batch reads. Reads past the
//! cache bring blocks of 512 bytes where the disk has them, and leave it to the caller which rows stay in memory.

use std::cell::RefCell;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::checked::read_some_at;
use crate::error::{Error, Result, ResultExt};
use crate::read_ahead;

/// Blocks that disks and folders read past the cache, the smallest first.
const BLOCKS: [usize; 2] = [512, 4096];
/// Bytes between two rows up to which one read brings both: it takes the disk no longer than a row.
const GAP: u64 = 4096;
/// Bytes of a read of several rows.
const READ: u64 = 64 << 10;

/// Bytes of rows from which on it is told that they go through the cache.
const MUCH: u64 = 64 << 20;

/// Rows of equal length in a file that is replaced but never changed.
#[derive(Debug)]
pub struct RowFile {
    file: File,
    path: PathBuf,
    /// First byte of the first row.
    start: u64,
    row_bytes: usize,
    rows: u64,
    /// Positions in the file and in memory that it is read at and to are multiples of this.
    block: usize,
}

impl RowFile {
    /// `rows` rows of `row_bytes` bytes of `file`, from byte `start` on. Past the system's cache if the system and the folder
    /// can, else through it. Errors name `path`.
    ///
    /// # Errors
    /// If the file cannot be opened again.
    pub fn new(
        file: &File,
        path: &Path,
        start: u64,
        (rows, row_bytes): (u64, usize),
    ) -> Result<Self> {
        let direct = BLOCKS.into_iter().find_map(|block| open_direct(file, block));
        let (file, block) = match direct {
            Some(found) => found,
            None => (file.try_clone().at(path)?, 1),
        };
        let opened = Self { file, path: path.into(), start, row_bytes, rows, block };
        if !opened.is_direct() && rows.saturating_mul(row_bytes as u64) >= MUCH {
            let path = path.display();
            tracing::info!(
                "{path}: this folder has no reads past the system's cache: rows go through it"
            );
        }
        Ok(opened)
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Words of 8 bytes of a row in memory, of which the last one may have bytes of no meaning.
    pub fn row_words(&self) -> usize {
        self.row_bytes.div_ceil(size_of::<u64>())
    }

    /// True if rows are read past the system's cache.
    pub fn is_direct(&self) -> bool {
        self.block > 1
    }

    /// Reads the rows of `ids`, in ascending order, into `out`, of [`RowFile::row_words`] each, many at a time.
    ///
    /// # Errors
    /// If an id has no row or comes after a larger one, `out` is not of that length, the file ends before, or the disk fails.
    pub fn read(&self, ids: &[u64], out: &mut [u64]) -> Result<()> {
        let words = self.row_words();
        if ids.len().checked_mul(words) != Some(out.len()) {
            let message = format!("{} rows of {words} words into {} words", ids.len(), out.len());
            return Err(Error::invalid(message));
        }
        if !ids.is_sorted() {
            return Err(Error::invalid("rows of a file are read in ascending order"));
        }
        if let Some(id) = ids.last().filter(|&&id| id >= self.rows) {
            let path = self.path.display();
            return Err(Error::invalid(format!("{path}: no row {id}: there are {}", self.rows)));
        }
        if self.row_bytes == 0 {
            return Ok(());
        }
        let mut rest = out;
        let mut reads = Vec::new();
        for rows in self.reads(ids) {
            let (own, others) = rest.split_at_mut(rows.len() * words);
            reads.push((&ids[rows], own));
            rest = others;
        }
        // Few reads are as many at a time as there can be.
        let grain = (reads.len() / read_ahead::READS).clamp(1, read_ahead::GRAIN);
        read_ahead::install(|| {
            let reads = reads.into_par_iter().with_min_len(grain);
            reads.try_for_each(|(ids, out)| self.read_near(ids, out))
        })
    }

    /// Ranges of ascending `ids` whose rows one read brings.
    fn reads(&self, ids: &[u64]) -> Vec<Range<usize>> {
        let mut reads = Vec::new();
        let mut first = 0;
        for at in 1..ids.len() {
            let gap = self.bytes(ids[at]).start.saturating_sub(self.bytes(ids[at - 1]).end);
            let all = self.bytes(ids[at]).end - self.bytes(ids[first]).start;
            if gap > GAP || all > READ {
                reads.push(first..at);
                first = at;
            }
        }
        if !ids.is_empty() {
            reads.push(first..ids.len());
        }
        reads
    }

    /// Bytes of a row in the file.
    fn bytes(&self, id: u64) -> Range<u64> {
        let start = self.start + id * self.row_bytes as u64;
        start..start + self.row_bytes as u64
    }

    /// Reads rows that are near each other, by one read.
    fn read_near(&self, ids: &[u64], out: &mut [u64]) -> Result<()> {
        thread_local! {
            static SPACE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let (Some(first), Some(last)) = (ids.first(), ids.last()) else { return Ok(()) };
        let start = self.bytes(*first).start;
        let block = self.block as u64;
        let before = (start % block) as usize;
        let needed = before + (self.bytes(*last).end - start) as usize;
        SPACE.with_borrow_mut(|space| {
            let len = needed.next_multiple_of(self.block);
            space.resize(space.len().max(len + self.block), 0);
            let shift = space.as_ptr().align_offset(self.block);
            let found = &mut space[shift..shift + len];
            self.fill(start - before as u64, found, needed)?;
            let words = self.row_words();
            for (&id, out) in ids.iter().zip(out.chunks_exact_mut(words)) {
                let at = before + (self.bytes(id).start - start) as usize;
                let out = &mut bytemuck::cast_slice_mut(out)[..self.row_bytes];
                out.copy_from_slice(&found[at..at + self.row_bytes]);
            }
            Ok(())
        })
    }

    /// Reads whole blocks from byte `start` on, of which `needed` bytes must be there: a file may end within a block.
    fn fill(&self, start: u64, out: &mut [u8], needed: usize) -> Result<()> {
        let mut done = 0;
        while done < needed {
            match read_some_at(&self.file, start + done as u64, &mut out[done..]) {
                // Reads past the cache end within a block at the end of the file only.
                Ok(0) => return Err(self.shortened()),
                Ok(found) if done + found < needed && !found.is_multiple_of(self.block) => {
                    return Err(self.shortened());
                }
                Ok(found) => done += found,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io(&self.path, e)),
            }
        }
        Ok(())
    }

    fn shortened(&self) -> Error {
        let path = self.path.display();
        Error::invalid(format!("{path}: the file became shorter while it was read"))
            .hint("the file was damaged or changed after it was written")
    }
}

/// Opens a file once more, whatever is at its path by now, to be read past the cache by blocks, if the system and the folder
/// can: some take the way at opening and refuse it at reading.
#[cfg(target_os = "linux")]
fn open_direct(file: &File, block: usize) -> Option<(File, usize)> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;

    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let direct = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let mut space = vec![0; 3 * block];
    // Not a multiple of the next larger block.
    let mut shift = space.as_ptr().align_offset(block);
    if (space.as_ptr() as usize + shift).is_multiple_of(2 * block) {
        shift += block;
    }
    let space = &mut space[shift..shift + block];
    // At the end of a file nothing is refused: a little one is read through the cache.
    let found = read_some_at(&direct, block as u64, space).ok()?;
    (found > 0).then_some((direct, block))
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_file: &File, _block: usize) -> Option<(File, usize)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Byte `at` of row `id`.
    fn byte(id: u64, at: usize) -> u8 {
        (id.wrapping_mul(2_654_435_761).wrapping_add(at as u64 * 97) >> 7) as u8
    }

    /// A file of a header, rows and no more.
    fn file(path: &Path, start: usize, (rows, row_bytes): (u64, usize)) -> RowFile {
        let header = vec![7; start];
        let values = (0..rows).flat_map(|id| (0..row_bytes).map(move |at| byte(id, at)));
        let bytes: Vec<u8> = header.into_iter().chain(values).collect();
        std::fs::write(path, bytes).unwrap();
        let file = File::open(path).unwrap();
        RowFile::new(&file, path, start as u64, (rows, row_bytes)).unwrap()
    }

    fn check(rows: &RowFile, ids: &[u64]) {
        let mut out = vec![0; ids.len() * rows.row_words()];
        rows.read(ids, &mut out).unwrap();
        for (&id, out) in ids.iter().zip(out.chunks_exact(rows.row_words().max(1))) {
            let out: &[u8] = bytemuck::cast_slice(out);
            let expected: Vec<u8> = (0..rows.row_bytes()).map(|at| byte(id, at)).collect();
            assert_eq!(out[..rows.row_bytes()], expected, "row {id}");
        }
    }

    #[test]
    fn rows_are_those_of_the_file_in_every_folder() {
        // Folders in memory and folders on a disk differ in what they can.
        let dirs =
            [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm"), tempfile::tempdir_in(".")];
        assert!(dirs[0].is_ok());
        for dir in dirs.into_iter().flatten() {
            let path = dir.path().join("rows");
            for (count, row_bytes) in [(5000, 512), (3000, 37), (9, 200_000), (400, 4), (1, 1)] {
                let rows = file(&path, 128, (count, row_bytes));
                check(&rows, &(0..count).collect::<Vec<_>>());
                check(&rows, &(0..count).step_by(13).collect::<Vec<_>>());
                check(&rows, &[0, 0, count / 2, count - 1, count - 1]);
                check(&rows, &[]);
            }
            check(&file(&path, 128, (10, 0)), &[3]);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn rows_are_read_past_the_cache_where_the_folder_can() {
        use std::os::unix::fs::OpenOptionsExt;

        let dirs = [tempfile::tempdir(), tempfile::tempdir_in(".")];
        for dir in dirs.into_iter().flatten() {
            let path = dir.path().join("rows");
            let rows = file(&path, 128, (5000, 512));
            let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
            let direct = File::options().read(true).custom_flags(flags).open(&path);
            let mut space = vec![0; 3 * 4096];
            let shift = space.as_ptr().align_offset(4096);
            let space = &mut space[shift..shift + 4096];
            let can = direct.is_ok_and(|direct| read_some_at(&direct, 4096, space).is_ok());
            assert_eq!(rows.is_direct(), can, "{}", path.display());
            assert!(!file(&path, 128, (1, 100)).is_direct(), "a little file");
        }
    }

    #[test]
    fn rows_near_each_other_come_by_one_read() {
        let dir = tempfile::tempdir().unwrap();
        let rows = file(&dir.path().join("rows"), 128, (5000, 512));
        assert_eq!(rows.reads(&[]), []);
        assert_eq!(rows.reads(&[4]).len(), 1);
        assert_eq!(rows.reads(&[0, 1, 9, 19, 29]), [0..3, 3..4, 4..5]);
        let all: Vec<u64> = (0..5000).collect();
        assert!(rows.reads(&all).iter().all(|read| read.len() * 512 <= READ as usize));
        let long = file(&dir.path().join("long"), 0, (3, 2 * READ as usize));
        assert_eq!(long.reads(&[0, 1, 2]), [0..1, 1..2, 2..3]);
    }

    #[test]
    fn a_replaced_file_is_read_as_it_was_and_a_shortened_one_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows");
        std::fs::write(&path, vec![1; 4096]).unwrap();
        let before = File::open(&path).unwrap();
        std::fs::write(dir.path().join("new"), vec![2; 4096]).unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        let rows = RowFile::new(&before, &path, 0, (8, 512)).unwrap();
        let mut out = vec![0; 64];
        rows.read(&[3], &mut out).unwrap();
        assert_eq!(out[0], 0x0101_0101_0101_0101);

        let rows = file(&path, 128, (100, 512));
        File::options().write(true).open(&path).unwrap().set_len(128 + 50 * 512 + 7).unwrap();
        rows.read(&[49], &mut out).unwrap();
        for id in [50, 60, 99] {
            let message = rows.read(&[id], &mut out).unwrap_err().to_string();
            assert!(message.contains("became shorter"), "{message}");
        }
        let message = rows.read(&[100], &mut out).unwrap_err().to_string();
        assert!(message.contains("no row 100: there are 100"), "{message}");
        assert!(rows.read(&[1, 2], &mut out).is_err(), "room for one");
        assert!(rows.read(&[2, 1], &mut [0; 128]).is_err(), "out of order");
    }
}
