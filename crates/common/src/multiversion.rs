//! Functions compiled for several processors.

/// Defines a function compiled twice: for the baseline processor, and for AVX2 and FMA, chosen at
/// run time. The default build targets baseline x86-64, whose four-lane loops are half as fast.
#[macro_export]
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
                if ::std::arch::is_x86_feature_detected!("avx2")
                    && ::std::arch::is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has the features the function is compiled for.
                    unsafe { avx2($($arg),*) };
                    return;
                }
            }
            body($($arg),*)
        }
    };
}
