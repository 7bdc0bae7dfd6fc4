//! Widening of stored values to `f32`.

use std::ops::Range;

use gnarl_common::{Buf, DType, Error, Result, prefetch};
use gnarl_graph::Column;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// The values of a dense column.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    F32(Buf<f32>),
    F16(Buf<f16>),
    Bf16(Buf<bf16>),
    U8(Buf<u8>),
}

impl Values {
    pub(crate) fn open(column: &Column) -> Result<Self> {
        Ok(match column.spec().dtype {
            DType::F32 => Self::F32(column.values()?),
            DType::F16 => Self::F16(column.values()?),
            DType::BF16 => Self::Bf16(column.values()?),
            DType::U8 => Self::U8(column.values()?),
            other => {
                return Err(Error::invalid(format!(
                    "{}: features of type {other} are not supported",
                    column.spec().file
                ))
                .hint("store them as f32, f16, bf16 or u8"));
            }
        })
    }

    /// Prefetches row `row` of rows of `width` values.
    #[inline]
    pub(crate) fn prefetch_row(&self, row: usize, width: usize) {
        let range = row * width..(row + 1) * width;
        match self {
            Self::F32(values) => prefetch::row(&values[range]),
            Self::F16(values) => prefetch::row(&values[range]),
            Self::Bf16(values) => prefetch::row(&values[range]),
            Self::U8(values) => prefetch::row(&values[range]),
        }
    }

    /// Number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::F32(values) => size_of_val(&values[..]),
            Self::F16(values) => size_of_val(&values[..]),
            Self::Bf16(values) => size_of_val(&values[..]),
            Self::U8(values) => size_of_val(&values[..]),
        };
        bytes as u64
    }

    /// Brings values of a mapped file into memory ahead of their reads.
    pub(crate) fn expect_reads(&self, range: Range<usize>) {
        match self {
            Self::F32(values) => values.expect_reads(range),
            Self::F16(values) => values.expect_reads(range),
            Self::Bf16(values) => values.expect_reads(range),
            Self::U8(values) => values.expect_reads(range),
        }
    }

    /// As [`Buf::expect_random_reads`].
    pub(crate) fn expect_random_reads(&self) {
        match self {
            Self::F32(values) => values.expect_random_reads(),
            Self::F16(values) => values.expect_random_reads(),
            Self::Bf16(values) => values.expect_random_reads(),
            Self::U8(values) => values.expect_random_reads(),
        }
    }

    /// Releases the memory of values of a mapped file.
    pub(crate) fn forget(&self, range: Range<usize>) {
        match self {
            Self::F32(values) => values.forget(range),
            Self::F16(values) => values.forget(range),
            Self::Bf16(values) => values.forget(range),
            Self::U8(values) => values.forget(range),
        }
    }

    /// Copies row `row` of rows as wide as `out`.
    #[inline]
    pub(crate) fn copy_row(&self, row: usize, out: &mut [f32]) {
        let range = row * out.len()..(row + 1) * out.len();
        match self {
            Self::F32(values) => out.copy_from_slice(&values[range]),
            Self::F16(values) => values[range].convert_to_f32_slice(out),
            Self::Bf16(values) => values[range].convert_to_f32_slice(out),
            Self::U8(values) => widen_bytes(&values[range], out),
        }
    }

    /// Widens the bytes of a row of values of this type, which begin at a multiple of their size.
    pub(crate) fn widen(&self, bytes: &[u8], out: &mut [f32]) {
        match self {
            Self::F32(_) => out.copy_from_slice(bytemuck::cast_slice(bytes)),
            Self::F16(_) => bytemuck::cast_slice::<u8, f16>(bytes).convert_to_f32_slice(out),
            Self::Bf16(_) => bytemuck::cast_slice::<u8, bf16>(bytes).convert_to_f32_slice(out),
            Self::U8(_) => widen_bytes(bytes, out),
        }
    }
}

fn widen_bytes(values: &[u8], out: &mut [f32]) {
    for (o, &v) in out.iter_mut().zip(values) {
        *o = f32::from(v);
    }
}
