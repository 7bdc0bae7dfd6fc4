//! Raw kernels over slices. They split their work into chunks of fixed size, or by results that are each the work of one
//! task, so that results do not depend on the number of threads.

pub(crate) mod bf16;
pub(crate) mod chunks;
pub(crate) mod distance;
pub(crate) mod elementwise;
mod filled_rows;
pub(crate) mod gather;
pub(crate) mod gemm;
pub(crate) mod head_rows;
pub(crate) mod math;
pub(crate) mod precision;
pub(crate) mod products;
pub(crate) mod row_blocks;
pub(crate) mod row_source;
pub(crate) mod saved;
pub(crate) mod spans;
pub(crate) mod widen;

pub(crate) use gnarl_common::{multiversion, prefetch::row as prefetch};
