//! Integers stored in the narrowest type for the largest of them.

use std::ops::Range;

use gnarl_common::{Buf, DType, Result, prefetch};

use crate::column::Column;

/// Integers of 8, 32 or 64 bits each.
#[derive(Debug, Clone)]
pub enum Narrow {
    /// Values below 2^8.
    U8(Buf<u8>),
    /// Values below 2^32.
    U32(Buf<u32>),
    /// Any values.
    U64(Buf<u64>),
}

/// [`Narrow`] as slices, looked up once for many reads.
#[derive(Debug, Clone, Copy)]
pub enum NarrowSlice<'a> {
    /// Values below 2^8.
    U8(&'a [u8]),
    /// Values below 2^32.
    U32(&'a [u32]),
    /// Any values.
    U64(&'a [u64]),
}

impl Narrow {
    /// The values of a column of integers.
    ///
    /// # Errors
    /// If they are of another type.
    pub fn of(column: &Column) -> Result<Self> {
        Ok(match column.spec().dtype {
            DType::U8 => Self::U8(column.values()?),
            DType::U32 => Self::U32(column.values()?),
            _ => Self::U64(column.values()?),
        })
    }

    /// All values.
    #[inline(always)]
    pub fn as_slice(&self) -> NarrowSlice<'_> {
        match self {
            Self::U8(values) => NarrowSlice::U8(values),
            Self::U32(values) => NarrowSlice::U32(values),
            Self::U64(values) => NarrowSlice::U64(values),
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As [`Buf::forget`].
    pub fn forget(&self, range: Range<usize>) {
        match self {
            Self::U8(values) => values.forget(range),
            Self::U32(values) => values.forget(range),
            Self::U64(values) => values.forget(range),
        }
    }

    /// Value `i`.
    #[inline]
    pub fn get(&self, i: u64) -> u64 {
        self.as_slice().get(i as usize)
    }

    /// Size in bytes.
    pub fn num_bytes(&self) -> usize {
        self.as_slice().num_bytes()
    }

    /// Number of values from the start of `range` on that satisfy `before`, if these are a prefix.
    #[inline]
    pub fn partition_point(&self, range: Range<u64>, before: impl Fn(u64) -> bool) -> u64 {
        let slice = range.start as usize..range.end as usize;
        let count = match self {
            Self::U8(values) => values[slice].partition_point(|&v| before(v.into())),
            Self::U32(values) => values[slice].partition_point(|&v| before(v.into())),
            Self::U64(values) => values[slice].partition_point(|&v| before(v)),
        };
        count as u64
    }
}

impl From<Buf<u64>> for Narrow {
    fn from(values: Buf<u64>) -> Self {
        Self::U64(values)
    }
}

impl From<Buf<u32>> for Narrow {
    fn from(values: Buf<u32>) -> Self {
        Self::U32(values)
    }
}

impl From<Vec<u64>> for Narrow {
    fn from(values: Vec<u64>) -> Self {
        Self::U64(values.into())
    }
}

impl From<Vec<u32>> for Narrow {
    fn from(values: Vec<u32>) -> Self {
        Self::U32(values.into())
    }
}

impl<'a> NarrowSlice<'a> {
    /// Number of values.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            Self::U8(values) => values.len(),
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
        }
    }

    /// Returns whether there is none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Value `i`.
    #[inline(always)]
    pub fn get(self, i: usize) -> u64 {
        match self {
            Self::U8(values) => values[i].into(),
            Self::U32(values) => values[i].into(),
            Self::U64(values) => values[i],
        }
    }

    /// The values in `range`, in order.
    pub fn range(self, range: Range<usize>) -> impl ExactSizeIterator<Item = u64> + 'a {
        range.map(move |i| self.get(i))
    }

    /// Size in bytes.
    pub fn num_bytes(self) -> usize {
        match self {
            Self::U8(values) => size_of_val(values),
            Self::U32(values) => size_of_val(values),
            Self::U64(values) => size_of_val(values),
        }
    }

    /// Prefetches value `i`, if there is one.
    #[inline(always)]
    pub fn prefetch(self, i: usize) {
        match self {
            Self::U8(values) => prefetch::item(values, i),
            Self::U32(values) => prefetch::item(values, i),
            Self::U64(values) => prefetch::item(values, i),
        }
    }
}
