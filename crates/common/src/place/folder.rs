//! Folders of this host.

use std::fs::File;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;

use super::{FileRange, Place, uncached};
use crate::checked::read_checked;
use crate::error::{Result, ResultExt};

/// A folder of this host, by its path.
#[derive(Debug, Clone)]
pub struct Folder(pub PathBuf);

impl Place for Folder {
    fn path_of(&self, file: &str) -> String {
        self.0.join(file).display().to_string()
    }

    fn size(&self, file: &str) -> Result<u64> {
        let path = self.0.join(file);
        Ok(std::fs::metadata(&path).at(&path)?.len())
    }

    fn read(&self, ranges: &mut [FileRange<'_>]) -> Result<Vec<u32>> {
        let read = |range: &mut FileRange<'_>| {
            let path = self.0.join(range.file);
            let file = File::open(&path).at(&path)?;
            read_checked(&file, &path, range.start, range.out)
        };
        ranges.par_iter_mut().map(read).collect()
    }

    fn expect(&self, file: &str, bytes: Range<u64>) {
        // To the end of the file where that is nearer; what cannot be read is told by those who ask for it.
        let len = NonZeroU64::new(bytes.end.saturating_sub(bytes.start));
        let len = len.filter(|_| bytes.end < u64::MAX);
        if let Ok(file) = File::open(self.0.join(file))
            && !bytes.is_empty()
        {
            _ = rustix::fs::fadvise(file, bytes.start, len, rustix::fs::Advice::WillNeed);
        }
    }

    fn uncached(&self) -> Option<Arc<dyn Place>> {
        Some(Arc::new(UncachedFolder(self.clone())))
    }
}

/// A folder whose files are read past the system's cache, as far as it can.
///
/// Of those who read more than memory holds, the cache keeps nothing that is read again: it takes memory, and a copy and the
/// search for pages to give up for each page (a fifth of an epoch over parts of a graph three times as large as memory).
#[derive(Debug, Clone)]
struct UncachedFolder(Folder);

impl Place for UncachedFolder {
    fn path_of(&self, file: &str) -> String {
        self.0.path_of(file)
    }

    fn size(&self, file: &str) -> Result<u64> {
        self.0.size(file)
    }

    fn read(&self, ranges: &mut [FileRange<'_>]) -> Result<Vec<u32>> {
        let folder = &self.0.0;
        let read = |range: &mut FileRange<'_>| uncached::read(&folder.join(range.file), range);
        ranges.par_iter_mut().map(read).collect()
    }

    /// Begins to read what goes through the cache.
    fn expect(&self, file: &str, bytes: Range<u64>) {
        self.0.expect(file, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Subfolder;
    use super::*;

    fn range<'a>(file: &'a str, start: u64, out: &'a mut [u8]) -> FileRange<'a> {
        FileRange { file, start, out }
    }

    #[test]
    fn ranges_of_several_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), b"0123456789").unwrap();
        std::fs::write(dir.path().join("b"), b"abc").unwrap();
        let folder = Folder(dir.path().into());
        assert_eq!(folder.size("b").unwrap(), 3);
        let mut first = [0; 4];
        let mut second = [0; 3];
        let mut ranges = [range("a", 2, &mut first), range("b", 0, &mut second)];
        let found = folder.read(&mut ranges).unwrap();
        assert_eq!((&first, &second), (b"2345", b"abc"));
        assert_eq!(found, [crc32fast::hash(b"2345"), crc32fast::hash(b"abc")]);
        let error = folder.read(&mut [range("b", 1, &mut second)]).unwrap_err();
        assert!(error.to_string().contains(&folder.path_of("b")), "{error}");

        std::fs::create_dir(dir.path().join("in")).unwrap();
        std::fs::write(dir.path().join("in/c"), b"xyz").unwrap();
        let within = Subfolder::new(Arc::new(folder), "in");
        for place in [within.uncached().unwrap(), Arc::new(within)] {
            first.fill(0);
            place.read(&mut [range("c", 1, &mut first[..2])]).unwrap();
            assert_eq!((&first[..2], place.size("c").unwrap()), (&b"yz"[..], 3));
        }
    }
}
