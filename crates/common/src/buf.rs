//! Read-only arrays that are either owned or mapped from a file.

use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

use crate::memory::{Pages, Table};
use crate::{Result, ResultExt};

/// A shared, immutable slice of plain values: in memory or mapped. Cloning is cheap.
#[derive(Clone)]
pub struct Buf<T: Pod> {
    source: Source<T>,
}

#[derive(Clone)]
enum Source<T> {
    Owned(Arc<Vec<T>>),
    Mapped {
        map: Arc<Mmap>,
        offset: usize,
        len: usize,
    },
    /// Bytes of pages, which have no file to come back from.
    Pages {
        pages: Arc<Pages>,
        offset: usize,
        len: usize,
    },
}

impl<T: Pod> Buf<T> {
    /// `len` values starting `offset` bytes into `map`.
    ///
    /// Returns `None` if the range leaves the map or is misaligned for `T`.
    pub fn mapped(map: Arc<Mmap>, offset: usize, len: usize) -> Option<Self> {
        let end = offset.checked_add(len.checked_mul(size_of::<T>())?)?;
        let bytes = map.get(offset..end)?;
        bytemuck::try_cast_slice::<u8, T>(bytes).ok()?;
        Some(Self { source: Source::Mapped { map, offset, len } })
    }
}

impl<T: Pod> Buf<T> {
    /// `len` values starting `offset` bytes into `pages`.
    ///
    /// Returns `None` if the range leaves the pages or is misaligned for `T`.
    pub fn of_pages(pages: Arc<Pages>, offset: usize, len: usize) -> Option<Self> {
        let end = offset.checked_add(len.checked_mul(size_of::<T>())?)?;
        bytemuck::try_cast_slice::<u8, T>(pages.get(offset..end)?).ok()?;
        Some(Self { source: Source::Pages { pages, offset, len } })
    }
}

impl Buf<u8> {
    /// The bytes of a file that is replaced but never changed, as all files that went through
    /// [`crate::staging`].
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn map(path: &Path) -> Result<Self> {
        let file = File::open(path).at(path)?;
        let len = file.metadata().at(path)?.len() as usize;
        if len == 0 {
            return Ok(Self::default());
        }
        // Benefit: a table of embeddings is read where it is, by as much as is used.
        // SAFETY: the file is written under a temporary name and renamed; another one of its name
        // leaves this one as it is. The mapping is read-only plain data.
        let map = Arc::new(unsafe { Mmap::map(&file) }.at(path)?);
        Ok(Self { source: Source::Mapped { map, offset: 0, len } })
    }

    /// The values of another type at `range`, which share the bytes where they are aligned.
    pub fn values<T: Pod>(&self, range: Range<usize>) -> Option<Buf<T>> {
        let len = range.len() / size_of::<T>();
        if let Source::Mapped { map, offset, .. } = &self.source
            && let Some(values) = Buf::mapped(Arc::clone(map), offset + range.start, len)
        {
            return Some(values);
        }
        let bytes = self.get(range)?;
        let mut values = vec![T::zeroed(); len];
        bytemuck::cast_slice_mut::<T, u8>(&mut values)
            .copy_from_slice(&bytes[..len * size_of::<T>()]);
        Some(values.into())
    }
}

/// Upper bound of the system's read-ahead before the requested byte.
const ALONG: usize = 2 << 20;

impl<T: Pod> Buf<T> {
    /// Advises the system that the values of `range` are read soon, so that it brings those of a mapped file into memory
    /// ahead of that.
    pub fn expect_reads(&self, range: Range<usize>) {
        let Source::Mapped { map, offset, len } = &self.source else { return };
        let start = range.start.min(*len);
        let end = range.end.min(*len);
        #[cfg(unix)]
        if start < end {
            let first = offset + start * size_of::<T>();
            let bytes = (end - start) * size_of::<T>();
            // A failure changes nothing.
            _ = map.advise_range(memmap2::Advice::WillNeed, first, bytes);
        }
        #[cfg(not(unix))]
        let _ = (map, offset);
    }

    /// Advises the system that values of a mapped file are read here and there: a read brings no neighbors into memory.
    pub fn expect_random_reads(&self) {
        let Source::Mapped { map, .. } = &self.source else { return };
        // A failure changes nothing.
        #[cfg(unix)]
        drop(map.advise(memmap2::Advice::Random));
        #[cfg(not(unix))]
        let _ = map;
    }

    /// Advises the system that the values of `range` are not read for a while: those of a mapped
    /// file no longer count as memory of this process. Reading them again brings them back.
    pub fn forget(&self, range: Range<usize>) {
        let Source::Mapped { map, offset, len } = &self.source else { return };
        let start = range.start.min(*len);
        let end = range.end.min(*len);
        let first = offset + start * size_of::<T>();
        // Reading a page also brings in its neighbors, including those before it.
        let first = first - first.min(ALONG);
        let bytes = (offset + end * size_of::<T>()).saturating_sub(first);
        #[cfg(unix)]
        if start < end {
            // Benefit: a pass over features four times as large as the budget stays within it.
            // SAFETY: the mapping is read-only and its file never changes, so that a page that was
            // dropped comes back with the same bytes. A failure changes nothing.
            _ = unsafe {
                map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, first, bytes)
            };
        }
        #[cfg(not(unix))]
        let _ = (map, bytes);
    }
}

impl<T: Pod> From<Vec<T>> for Buf<T> {
    fn from(values: Vec<T>) -> Self {
        Self { source: Source::Owned(Arc::new(values)) }
    }
}

impl<T: Pod> From<Table<T>> for Buf<T> {
    fn from(table: Table<T>) -> Self {
        let len = table.len();
        let pages = Arc::new(table.into_pages());
        Self::of_pages(pages, 0, len).expect("values are of 8 bytes at most")
    }
}

impl<T: Pod> Default for Buf<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: Pod> Deref for Buf<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.source {
            Source::Owned(values) => values,
            Source::Mapped { map, offset, len } => {
                let bytes = &map[*offset..*offset + *len * size_of::<T>()];
                bytemuck::cast_slice(bytes)
            }
            Source::Pages { pages, offset, len } => {
                bytemuck::cast_slice(&pages[*offset..*offset + *len * size_of::<T>()])
            }
        }
    }
}

impl<T: Pod + std::fmt::Debug> std::fmt::Debug for Buf<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buf({} values)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SparePages;

    #[test]
    fn values_of_a_file_stay_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let bytes: Vec<u8> = (0..24).collect();
        std::fs::write(&path, &bytes).unwrap();
        let all = Buf::map(&path).unwrap();
        assert_eq!(&all[..], &bytes);
        for (range, copied) in [(8..16, false), (9..17, true)] {
            let values = all.values::<u32>(range.clone()).unwrap();
            assert_eq!(bytemuck::cast_slice::<u32, u8>(&values), &bytes[range]);
            assert_eq!(all.as_ptr_range().contains(&values.as_ptr().cast()), !copied);
        }
        assert!(all.values::<u32>(20..28).is_none());
        std::fs::write(&path, "").unwrap();
        assert!(Buf::map(&path).unwrap().is_empty());
    }

    #[test]
    fn values_in_memory_are_not_forgotten() {
        let mut pages = Arc::new(SparePages::default()).take(65).unwrap();
        pages.fill(7);
        let pages = Arc::new(pages);
        let values = Buf::<u16>::of_pages(pages.clone(), 2, 31).unwrap();
        values.forget(0..31);
        values.expect_reads(0..31);
        assert_eq!(values[..], [0x0707; 31]);
        assert!(Buf::<u16>::of_pages(pages.clone(), 2, 32).is_none());
        assert!(Buf::<u16>::of_pages(pages, 1, 8).is_none());
    }

    #[test]
    fn tables_become_values() {
        let spare = Arc::new(SparePages::default());
        let mut table = spare.table::<u32>(3).unwrap();
        table.copy_from_slice(&[7, 8, 9]);
        let values = Buf::from(table);
        assert_eq!(values[..], [7, 8, 9]);
        assert!(Buf::from(spare.table::<u64>(0).unwrap()).is_empty());
    }

    #[test]
    fn owned_values_are_shared() {
        let a = Buf::from(vec![1u32, 2, 3]);
        let b = a.clone();
        assert_eq!(&a[..], &b[..]);
        assert_eq!(a.as_ptr(), b.as_ptr());
    }
}
