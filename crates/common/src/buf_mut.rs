//! Arrays that change, in memory or in a mapped file.

use std::fs::File;
use std::io::Read;
use std::ops::{Deref, DerefMut, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::error::{Context, Result, ResultExt};
use crate::{Buf, Error, Kind};

/// The place of an array that changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Home {
    /// The memory.
    #[default]
    Memory,
    /// A file without a name in this folder, which the system deletes with the process.
    Folder(PathBuf),
}

impl Home {
    /// The folder of files, if arrays are in files.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Memory => None,
            Self::Folder(folder) => Some(folder),
        }
    }
}

/// Values that change: in memory, or in a mapped file, whose pages are written back and read again as memory is needed for
/// others.
///
/// ```
/// use gnarl_common::{BufMut, Home};
///
/// let folder = Home::Folder(std::env::temp_dir());
/// let mut values = BufMut::<f32>::zeros(1000, &folder)?;
/// values[999] = 2.0;
/// assert_eq!((values[0], values[999]), (0.0, 2.0));
/// # Ok::<(), gnarl_common::Error>(())
/// ```
#[derive(Debug)]
pub struct BufMut<T> {
    source: Source<T>,
}

#[derive(Debug)]
enum Source<T> {
    Memory(Vec<T>),
    Mapped { map: MmapMut, file: Arc<File>, len: usize },
}

impl<T: Pod> BufMut<T> {
    /// `len` zeros. Room for them is taken on the disk at once, so that writing a value never fails.
    ///
    /// # Errors
    /// If the folder cannot be written to, or its disk is full.
    pub fn zeros(len: usize, home: &Home) -> Result<Self> {
        match home.folder() {
            Some(folder) if len > 0 => {
                let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| {
                    Error::new(Kind::Limit, format!("{len} values exceed the address space"))
                })?;
                let doing = || format!("making a file of {bytes} bytes in {}", folder.display());
                Self::file(folder, len, bytes).while_doing(doing)
            }
            _ => Ok(vec![T::zeroed(); len].into()),
        }
    }

    fn file(folder: &Path, len: usize, bytes: usize) -> Result<Self> {
        let file = tempfile::tempfile_in(folder).at(folder)?;
        reserve(&file, bytes as u64).at(folder)?;
        // Benefit: values exceed the memory, and are read and written where they are.
        // SAFETY: the file has no name, so that nobody else changes it or cuts it short; all its blocks are reserved. The
        // values are plain data.
        let map = unsafe { MmapMut::map_mut(&file) }.at(folder)?;
        // Rows that are used at random must not bring others along, for which rows in use would have to leave.
        advise(&map, Access::Random);
        Ok(Self { source: Source::Mapped { map, file: Arc::new(file), len } })
    }

    /// A copy in `home`.
    ///
    /// # Errors
    /// As [`BufMut::zeros`].
    pub fn copy_to(&self, home: &Home) -> Result<Self> {
        let mut copy = Self::zeros(self.len(), home)?;
        copy.fill_from(self);
        Ok(copy)
    }

    /// Copies all values of `other`, of equal length.
    ///
    /// # Panics
    /// If lengths differ.
    pub fn fill_from(&mut self, other: &Self) {
        self.copy_from_slice(&other.scan());
    }

    /// The values, to be read from first to last: those of a mapped file are read ahead.
    pub fn scan(&self) -> Scan<'_, T> {
        if let Source::Mapped { map, .. } = &self.source {
            advise(map, Access::Sequential);
        }
        Scan(self)
    }

    /// Advises the system that the values of `range` are soon used, from a thread of its own: asking for many takes a while.
    pub fn expect(&self, range: Range<usize>) {
        let Source::Mapped { file, len, .. } = &self.source else { return };
        let range = range.start.min(*len)..range.end.min(*len);
        let file = Arc::clone(file);
        let size = size_of::<T>();
        if !range.is_empty() {
            let read = move || read_ahead(&file, range.start * size..range.end * size);
            // Without a thread to spare the values are read when they are used.
            _ = std::thread::Builder::new().name("read-ahead".into()).spawn(read);
        }
    }

    /// Begins to read ranges that are used at once, so that the disk has many requests at a time instead of one a thread.
    pub fn expect_now(&self, ranges: impl Iterator<Item = Range<usize>>) {
        let Source::Mapped { file, len, .. } = &self.source else { return };
        for range in ranges.filter(|range| range.start < range.end && range.end <= *len) {
            read_ahead(file, range.start * size_of::<T>()..range.end * size_of::<T>());
        }
    }

    /// Returns whether the values are in a file.
    pub fn is_mapped(&self) -> bool {
        matches!(self.source, Source::Mapped { .. })
    }

    /// Reads the values from place `first` on, in one piece.
    ///
    /// # Errors
    /// If the disk fails.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn read_at(&self, first: usize, values: &mut [T]) -> Result<()> {
        let range = first..first + values.len();
        assert!(range.end <= self.len(), "{range:?} of {} values", self.len());
        match &self.source {
            #[cfg(unix)]
            Source::Mapped { file, .. } => {
                use std::os::unix::fs::FileExt;
                let bytes = bytemuck::cast_slice_mut(values);
                file.read_exact_at(bytes, (first * size_of::<T>()) as u64).map_err(failed)
            }
            _ => {
                values.copy_from_slice(&self[range]);
                Ok(())
            }
        }
    }

    /// Sets the values from place `first` on, in one piece, without reading those that they replace.
    ///
    /// # Errors
    /// If the disk fails.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn write_at(&mut self, first: usize, values: &[T]) -> Result<()> {
        let range = first..first + values.len();
        assert!(range.end <= self.len(), "{range:?} of {} values", self.len());
        match &mut self.source {
            #[cfg(unix)]
            Source::Mapped { file, .. } => {
                use std::os::unix::fs::FileExt;
                let bytes = bytemuck::cast_slice(values);
                file.write_all_at(bytes, (first * size_of::<T>()) as u64).map_err(failed)
            }
            _ => {
                self[range].copy_from_slice(values);
                Ok(())
            }
        }
    }

    /// The values, which change no more.
    ///
    /// # Errors
    /// If the system refuses to map the file.
    pub fn freeze(self) -> Result<Buf<T>> {
        match self.source {
            Source::Memory(values) => Ok(values.into()),
            Source::Mapped { map, len, .. } => {
                advise(&map, Access::Any);
                let frozen = map.make_read_only().map_err(failed)?;
                let values = Buf::mapped(Arc::new(frozen), 0, len);
                values.ok_or_else(|| Error::new(Kind::Io, "a temporary file is cut short"))
            }
        }
    }
}

/// The values of a [`BufMut`] that are read from first to last, until this is dropped.
#[derive(Debug)]
pub struct Scan<'a, T: Pod>(&'a BufMut<T>);

impl<T: Pod> Deref for Scan<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0
    }
}

impl<T: Pod> Drop for Scan<'_, T> {
    fn drop(&mut self) {
        if let Source::Mapped { map, .. } = &self.0.source {
            advise(map, Access::Random);
        }
    }
}

/// How values of a file are used.
enum Access {
    Random,
    Sequential,
    Any,
}

/// Tells the system how a file is read. A failure changes nothing.
fn advise(map: &MmapMut, access: Access) {
    #[cfg(unix)]
    {
        _ = map.advise(match access {
            Access::Random => memmap2::Advice::Random,
            Access::Sequential => memmap2::Advice::Sequential,
            Access::Any => memmap2::Advice::Normal,
        });
    }
    #[cfg(not(unix))]
    let _ = (map, access);
}

fn failed(e: std::io::Error) -> Error {
    Error::new(Kind::Io, format!("a temporary file: {e}"))
}

/// Takes room on the disk.
fn reserve(file: &File, bytes: u64) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
        Ok(()) => return Ok(()),
        Err(e) if e == rustix::io::Errno::OPNOTSUPP || e == rustix::io::Errno::NOSYS => {}
        Err(e) => return Err(e.into()),
    }
    // The file system does not reserve: write.
    let mut zeros = std::io::repeat(0).take(bytes);
    std::io::copy(&mut zeros, &mut &*file).map(drop)
}

/// Reads a range of bytes into the memory that the system has to spare.
fn read_ahead(file: &File, bytes: Range<usize>) {
    #[cfg(target_os = "linux")]
    {
        let first = bytes.start as u64;
        let len = std::num::NonZeroU64::new(bytes.len() as u64);
        // A failure changes nothing.
        _ = rustix::fs::fadvise(file, first, len, rustix::fs::Advice::WillNeed);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, bytes);
}

impl<T> From<Vec<T>> for BufMut<T> {
    fn from(values: Vec<T>) -> Self {
        Self { source: Source::Memory(values) }
    }
}

impl<T> Default for BufMut<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: Pod> Deref for BufMut<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.source {
            Source::Memory(values) => values,
            Source::Mapped { map, .. } => bytemuck::cast_slice(map),
        }
    }
}

impl<T: Pod> DerefMut for BufMut<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.source {
            Source::Memory(values) => values,
            Source::Mapped { map, .. } => bytemuck::cast_slice_mut(map),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_in_memory_and_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let len = (6 << 20) + 5;
        let filled = |home: &Home| {
            let mut values = BufMut::<u32>::zeros(len, home).unwrap();
            assert!(values.iter().all(|&value| value == 0));
            values.iter_mut().zip(0..).for_each(|(value, i)| *value = i);
            values.expect(7..len + 9);
            values.expect_now([3..4, 5..5, len..len + 1].into_iter());
            let copy = values.copy_to(home).unwrap();
            assert_eq!(*copy, *values);
            assert_eq!(*copy.scan(), *values);
            let mut some = vec![0; 1000];
            values.read_at(70, &mut some).unwrap();
            assert_eq!(some, (70..1070).collect::<Vec<u32>>());
            values.write_at(len - 1000, &some).unwrap();
            assert_eq!((values[len - 1001], values[len - 1]), (len as u32 - 1001, 1069));
            values.freeze().unwrap()
        };
        let folder = Home::Folder(dir.path().into());
        assert_eq!(*filled(&Home::Memory), *filled(&folder));
        assert!(BufMut::<u32>::zeros(0, &folder).unwrap().is_empty());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "files have no names");
    }

    #[test]
    fn a_disk_without_room_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Home::Folder(dir.path().into());
        let error = BufMut::<u64>::zeros(1 << 50, &folder).unwrap_err().to_string();
        assert!(error.contains("making a file of") && error.contains(" bytes in "), "{error}");
        let nowhere = Home::Folder(dir.path().join("nowhere"));
        let error = BufMut::<u64>::zeros(1, &nowhere).unwrap_err().to_string();
        assert!(error.contains("nowhere"), "{error}");
    }
}
