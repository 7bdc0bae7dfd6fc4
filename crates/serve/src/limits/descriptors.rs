//! Files that the process may still open.

use std::io;

/// Descriptors that are kept for what a server opens besides connections.
const SPARE: usize = 16;
/// Connections that a server has in any case.
const LEAST: usize = 4;

/// The number of connections for which there are descriptors, at most `wanted`.
#[cfg(unix)]
pub fn connections(wanted: usize) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let open = std::fs::read_dir("/dev/fd").map_or(SPARE, Iterator::count);
    wanted.min(limit.saturating_sub(open + SPARE).max(LEAST))
}

/// The number of connections, where descriptors have no limit.
#[cfg(not(unix))]
pub fn connections(wanted: usize) -> usize {
    wanted
}

/// Returns whether an error is for want of descriptors or memory.
#[cfg(unix)]
pub fn is_want(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let wants = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    error.raw_os_error().is_some_and(|code| wants.iter().any(|want| want.raw_os_error() == code))
}

/// As on other systems, by the kind.
#[cfg(not(unix))]
pub fn is_want(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
}
