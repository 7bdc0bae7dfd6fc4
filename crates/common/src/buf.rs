//! Read-only arrays that are either owned or mapped from a file.

use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

/// A shared, immutable slice of plain values: in memory or mapped. Cloning is cheap.
#[derive(Clone)]
pub struct Buf<T: Pod> {
    source: Source<T>,
}

#[derive(Clone)]
enum Source<T> {
    Owned(Arc<Vec<T>>),
    Mapped { map: Arc<Mmap>, offset: usize, len: usize },
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

/// Upper bound of the system's read-ahead before the requested byte.
const ALONG: usize = 2 << 20;

impl<T: Pod> Buf<T> {
    /// Advises the system that the values of `range` are not read for a while: those of a mapped
    /// file no longer count as memory of this process. Reading them again brings them back.
    pub fn forget(&self, range: Range<usize>) {
        let Source::Mapped { map, offset, len } = &self.source else { return };
        let (start, end) = (range.start.min(*len), range.end.min(*len));
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

    #[test]
    fn owned_values_are_shared() {
        let a = Buf::from(vec![1u32, 2, 3]);
        let b = a.clone();
        assert_eq!(&a[..], &b[..]);
        assert_eq!(a.as_ptr(), b.as_ptr());
    }
}
