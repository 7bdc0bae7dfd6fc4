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

/// Defines a function compiled twice: for the baseline processor, and for AVX2 and FMA, chosen at
/// run time. The default build targets baseline x86-64, whose four-lane loops are half as fast.
macro_rules! multiversion {
    ($(#[$attr:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[$attr])*
        $vis fn $name($($arg: $ty),*) {
            #[inline(always)]
            fn body($($arg: $ty),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) {
                    body($($arg),*)
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has the features the function is compiled for.
                    unsafe { avx2($($arg),*) };
                    return;
                }
            }
            body($($arg),*)
        }
    };
}
pub(crate) use multiversion;

pub(crate) use gnarl_common::prefetch::row as prefetch;
