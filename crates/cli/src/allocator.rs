//! A mode of the allocator of commands, mimalloc, with little unused memory.

// For `mi_option_set`: programs name it as their allocator themselves.
use mimalloc as _;

/// Budget from which the time that data pages of 2 MiB save outweighs what they round up: within 96 MB they nearly double
/// the peak of a run, and an epoch is a tenth shorter.
pub const AMPLE: u64 = 256 << 20;

/// Returns freed memory to the system at once from here on, which keeps small programs small: by
/// default mimalloc keeps freed memory for a second and requests pages of 2 MiB, which together
/// double the peak of a partitioner that holds 20 MiB.
///
/// With `large`, data pages of 2 MiB stay: they save time where memory is read at random.
pub fn hold_little(large: bool) {
    unsafe extern "C" {
        fn mi_option_set(option: libc::c_int, value: libc::c_long);
    }
    /// Number of mimalloc's `mi_option_purge_delay`, in versions 2 and 3.
    const PURGE_DELAY: libc::c_int = 15;
    // SAFETY: sets an integer of the allocator that is linked in, from the only thread.
    unsafe { mi_option_set(PURGE_DELAY, 0) };
    #[cfg(target_os = "linux")]
    if !large {
        // SAFETY: takes integers only and changes how later page faults are served.
        unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    }
}
