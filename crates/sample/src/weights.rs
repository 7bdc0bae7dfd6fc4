//! Edge weights in their stored type.

use gnarl_common::prefetch::item as prefetch;
use gnarl_common::{Buf, DType, Error, Result};
use gnarl_graph::Column;
use half::{bf16, f16};

use crate::lanes::LANES;

/// One weight per edge, mapped or in memory. Weights of 16 bits are widened only when they are
/// read: draws and batches use the stored value.
#[derive(Debug, Clone)]
pub enum Weights {
    /// Single precision.
    F32(Buf<f32>),
    /// Half precision.
    F16(Buf<f16>),
    /// The upper half of single precision.
    BF16(Buf<bf16>),
}

/// Weights as slices, looked up once for many reads.
#[derive(Debug, Clone, Copy)]
pub enum WeightSlice<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    BF16(&'a [bf16]),
}

impl Weights {
    /// The values of a column.
    ///
    /// # Errors
    /// If they are of another type.
    pub fn of(column: &Column) -> Result<Self> {
        Ok(match column.spec().dtype {
            DType::F32 => Self::F32(column.values()?),
            DType::F16 => Self::F16(column.values()?),
            DType::BF16 => Self::BF16(column.values()?),
            other => {
                let file = &column.spec().file;
                let message = format!("{file}: edge weights of type {other} are not supported");
                return Err(Error::invalid(message).hint("store them as f32, f16 or bf16"));
            }
        })
    }

    /// Number of edges.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::BF16(values) => values.len(),
        }
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size in bytes.
    pub fn num_bytes(&self) -> usize {
        match self {
            Self::F32(values) => size_of_val(&values[..]),
            Self::F16(values) => size_of_val(&values[..]),
            Self::BF16(values) => size_of_val(&values[..]),
        }
    }

    /// The weight of edge `row`.
    ///
    /// # Panics
    /// If there is none.
    pub fn get(&self, row: usize) -> f32 {
        self.as_slice().get(row)
    }

    pub(crate) fn as_slice(&self) -> WeightSlice<'_> {
        match self {
            Self::F32(values) => WeightSlice::F32(values),
            Self::F16(values) => WeightSlice::F16(values),
            Self::BF16(values) => WeightSlice::BF16(values),
        }
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident),*) => {
        $(impl From<Buf<$type>> for Weights {
            fn from(values: Buf<$type>) -> Self {
                Self::$variant(values)
            }
        }

        impl From<Vec<$type>> for Weights {
            fn from(values: Vec<$type>) -> Self {
                Self::$variant(values.into())
            }
        })*
    };
}
from!(f32 => F32, f16 => F16, bf16 => BF16);

impl WeightSlice<'_> {
    /// Weight `i`.
    #[inline(always)]
    pub fn get(self, i: usize) -> f32 {
        match self {
            Self::F32(values) => values[i],
            Self::F16(values) => widen(values[i]),
            Self::BF16(values) => values[i].to_f32(),
        }
    }

    /// The weights of `count` edges from that at `first` on.
    #[inline(always)]
    pub fn lanes(self, first: usize, count: usize) -> [f32; LANES] {
        match self {
            Self::F32(values) => lanes(&values[first..], count, |weight| weight),
            Self::F16(values) => lanes(&values[first..], count, widen),
            Self::BF16(values) => lanes(&values[first..], count, widen_brain),
        }
    }

    /// The sum of the weights above 0 of `count` edges from that at `first` on.
    #[inline(always)]
    pub fn sum(self, first: usize, count: usize) -> f32 {
        match self {
            Self::F32(values) => sum(&values[first..first + count], |weight| weight),
            Self::F16(values) => sum(&values[first..first + count], widen),
            Self::BF16(values) => sum(&values[first..first + count], widen_brain),
        }
    }

    /// Prefetches the first of `count` weights from `first` on.
    #[inline(always)]
    pub fn prefetch(self, first: usize, count: usize) {
        match self {
            Self::F32(values) => lines(values, first, count.min(128)),
            Self::F16(values) => lines(values, first, count.min(128)),
            Self::BF16(values) => lines(values, first, count.min(128)),
        }
    }
}

#[inline(always)]
fn lanes<T: Copy>(values: &[T], count: usize, widen: impl Fn(T) -> f32) -> [f32; LANES] {
    let mut lanes = [0.0; LANES];
    match values.first_chunk::<LANES>() {
        // Values past the end are wasted, but a loop of known length is faster.
        Some(values) => {
            for (lane, &value) in lanes.iter_mut().zip(values) {
                *lane = widen(value);
            }
        }
        None => {
            for (lane, &value) in lanes.iter_mut().zip(&values[..count]) {
                *lane = widen(value);
            }
        }
    }
    lanes
}

#[inline(always)]
fn sum<T: Copy>(values: &[T], widen: impl Fn(T) -> f32) -> f32 {
    // As many partial sums as two vectors hold, so that additions do not wait for each other.
    let mut sums = [0f32; 16];
    let (whole, rest) = values.as_chunks::<16>();
    for values in whole {
        for (sum, &value) in sums.iter_mut().zip(values) {
            *sum += widen(value).max(0.0);
        }
    }
    let rest: f32 = rest.iter().map(|&value| widen(value).max(0.0)).sum();
    sums.iter().sum::<f32>() + rest
}

#[inline(always)]
fn lines<T>(values: &[T], first: usize, count: usize) {
    for line in (0..count).step_by(64 / size_of::<T>()) {
        prefetch(values, first + line);
    }
}

/// Exact and free of branches, so that loops over it vectorize; `half` checks the processor's
/// features on every call.
#[inline(always)]
fn widen(half: f16) -> f32 {
    let bits = u32::from(half.to_bits());
    let two_to_112 = f32::from_bits(0x7780_0000);
    let magnitude = f32::from_bits((bits & 0x7fff) << 13) * two_to_112;
    // Infinity and NaN keep the largest exponent.
    let special = if bits & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(magnitude.to_bits() | special | (bits & 0x8000) << 16)
}

#[inline(always)]
fn widen_brain(half: bf16) -> f32 {
    f32::from_bits(u32::from(half.to_bits()) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_widens_as_it_should() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
            let pairs = [(widen(half), half.to_f32()), (widen_brain(brain), brain.to_f32())];
            for (found, expected) in pairs {
                let same = found.to_bits() == expected.to_bits();
                assert!(same || (found.is_nan() && expected.is_nan()), "{bits:#x}: {found}");
            }
        }
    }

    #[test]
    fn reads_agree_in_every_type() {
        let values: Vec<f32> = (0..100).map(|i| (i % 7) as f32 - 1.0).collect();
        let half: Vec<f16> = values.iter().map(|&v| f16::from_f32(v)).collect();
        let brain: Vec<bf16> = values.iter().map(|&v| bf16::from_f32(v)).collect();
        for weights in [Weights::from(values.clone()), half.into(), brain.into()] {
            let slice = weights.as_slice();
            assert_eq!(weights.len(), 100);
            assert!((0..100).all(|i| slice.get(i) == values[i]));
            for first in [0, 67, 68, 69, 99] {
                let count = LANES.min(100 - first);
                assert_eq!(slice.lanes(first, count)[..count], values[first..first + count]);
            }
            let above: f32 = values[3..91].iter().filter(|&&v| v > 0.0).sum();
            assert_eq!(slice.sum(3, 88), above);
        }
    }
}
