//! Element types of columns.

use std::fmt;

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// The type of a column's values, little-endian on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum DType {
    U8,
    U32,
    U64,
    I32,
    I64,
    F16,
    /// Stored as `<u2` in the npy header: numpy has no bfloat16.
    BF16,
    F32,
    F64,
}

impl DType {
    /// Bytes of one value.
    pub fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F16 | Self::BF16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// The npy type string.
    pub fn npy(self) -> &'static str {
        match self {
            Self::U8 => "|u1",
            Self::U32 => "<u4",
            Self::U64 => "<u8",
            Self::I32 => "<i4",
            Self::I64 => "<i8",
            Self::F16 => "<f2",
            Self::BF16 => "<u2",
            Self::F32 => "<f4",
            Self::F64 => "<f8",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U8 => "u8",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

/// A Rust type that columns may hold.
pub trait Element: bytemuck::Pod + Send + Sync {
    /// Its column type.
    const DTYPE: DType;
}

macro_rules! element {
    ($($type:ty => $dtype:ident),*) => {
        $(impl Element for $type { const DTYPE: DType = DType::$dtype; })*
    };
}
element!(u8 => U8, u32 => U32, u64 => U64, i32 => I32, i64 => I64, f16 => F16, bf16 => BF16,
         f32 => F32, f64 => F64);
