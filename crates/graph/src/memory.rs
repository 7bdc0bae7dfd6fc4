//! What the process takes of the machine.

/// Largest resident memory of this process so far, in bytes.
///
/// Linux tells it for the program itself; `getrusage`, the way elsewhere, may count what the parent
/// held when it started the process.
pub fn peak_rss() -> u64 {
    high_water_mark().unwrap_or_else(|| {
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
    })
}

/// `VmHWM` of `/proc/self/status`, in bytes.
fn high_water_mark() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
