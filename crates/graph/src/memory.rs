//! What the process takes of the machine.

/// Largest resident memory of this process so far, in bytes.
pub fn peak_rss() -> u64 {
    // SAFETY: `rusage` is plain integers, for which all zeros is a value, and `getrusage` writes
    // no more than one of them through the valid pointer it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    // Linux counts KiB, macOS bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    usage.ru_maxrss.max(0) as u64 * unit
}
