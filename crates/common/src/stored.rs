//! Values in their stored type.

use half::{bf16, f16};

/// Dense rows, one after the other, as they are stored.
#[derive(Debug, Clone, Copy)]
pub enum Stored<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Half precision.
    F16(&'a [f16]),
    /// The upper half of single precision.
    Bf16(&'a [bf16]),
}
