//! Files that the process may still open.

/// Descriptors that are kept for what a server opens besides connections.
const SPARE: usize = 16;
/// Connections that a server has in any case.
const LEAST: usize = 4;

/// The number of connections for which there are descriptors, at most `wanted`.
pub fn connections(wanted: usize) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let open = std::fs::read_dir("/dev/fd").map_or(SPARE, Iterator::count);
    wanted.min(limit.saturating_sub(open + SPARE).max(LEAST))
}
