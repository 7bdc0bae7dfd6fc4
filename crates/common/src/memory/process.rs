//! Resource usage of the process.

/// Largest resident memory of this process so far, in bytes.
///
/// Linux reports it for the program itself; `getrusage`, the fallback elsewhere, may count the
/// memory that the parent had when it started the process.
pub fn peak_rss() -> u64 {
    status("VmHWM:").unwrap_or_else(|| {
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

/// Resident memory of this process in bytes, pages of mapped files included; `None` where the system
/// has no `/proc`.
pub fn current_rss() -> Option<u64> {
    status("VmRSS:")
}

/// Resident memory of this process now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resident {
    /// Bytes of its own.
    pub anonymous: u64,
    /// Bytes of mapped files, which the system can take back.
    pub mapped: u64,
}

/// Resident memory of this process by kind; `None` where the system has no `/proc`.
pub fn resident() -> Option<Resident> {
    Some(Resident { anonymous: status("RssAnon:")?, mapped: status("RssFile:")? })
}

/// Files, sockets and the like that this process has open; `None` where the system does not list
/// them.
pub fn open_descriptors() -> Option<u64> {
    let open = std::fs::read_dir("/dev/fd").ok()?.count() as u64;
    // The listing itself is one of them.
    Some(open.saturating_sub(1))
}

/// A line of `/proc/self/status` that counts KiB, in bytes.
fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_count() {
        let files: Vec<_> = (0..20).map(|_| tempfile::tempfile().unwrap()).collect();
        assert!(open_descriptors().is_none_or(|open| open >= files.len() as u64));
    }

    #[test]
    fn memory_is_at_most_its_peak() {
        assert!(current_rss().is_none_or(|now| 0 < now && now <= peak_rss()));
        assert!(resident().is_none_or(|now| 0 < now.anonymous && now.anonymous <= peak_rss()));
    }
}
