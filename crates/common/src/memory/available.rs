//! Available memory of the process, from limits of control groups and the machine.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Root of `/proc` and `/sys`.
const ROOT: &str = "/";

/// Memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Available {
    /// Free for use.
    pub left: u64,
    /// Limit in total.
    pub limit: u64,
    /// True if a control group sets the limit, not the machine.
    pub grouped: bool,
}

/// The memory available to this process; `None` where the system does not report it.
pub fn available() -> Option<Available> {
    under(Path::new(ROOT))
}

/// Processes that share the memory available to this one.
static SHARERS: AtomicU64 = AtomicU64::new(1);

/// Says how many processes share the memory available to this one: those of a run on this host.
pub fn share_among(processes: usize) {
    SHARERS.store(processes.max(1) as u64, Ordering::Relaxed);
}

/// Processes that share the memory available to this one.
pub fn sharers() -> u64 {
    SHARERS.load(Ordering::Relaxed)
}

/// As [`available`], for tests with another root.
fn under(root: &Path) -> Option<Available> {
    let groups = std::iter::once(machine(root)).flatten().chain(groups(root));
    groups.min_by_key(|memory| memory.left)
}

/// The memory of the machine.
fn machine(root: &Path) -> Option<Available> {
    let text = read_to_string(root.join("proc/meminfo")).ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let (left, limit) = (kib("MemAvailable:")? << 10, kib("MemTotal:")? << 10);
    Some(Available { left, limit, grouped: false })
}

/// The memory left by each control group of this process, and each above it, in both versions.
fn groups(root: &Path) -> Vec<Available> {
    let text = read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(kinds), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (top, files) = match kinds {
            "" => ("sys/fs/cgroup", ["memory.max", "memory.current"]),
            kinds if kinds.split(',').any(|kind| kind == "memory") => {
                ("sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes"])
            }
            _ => continue,
        };
        // In a container the path may be that of the host: the top group is always checked.
        let top = root.join(top);
        let group: PathBuf = top.join(path.trim_start_matches('/'));
        let above = group.ancestors().take_while(|dir| dir.starts_with(&top));
        found.extend(above.filter_map(|dir| group_at(dir, files)));
    }
    found
}

/// The memory left by the control group at `dir`, if it has a limit. File pages are reclaimable.
fn group_at(dir: &Path, [limit, used]: [&str; 2]) -> Option<Available> {
    let number =
        |file: &str| -> Option<u64> { read_to_string(dir.join(file)).ok()?.trim().parse().ok() };
    // Without a limit it is "max", or more than any machine has.
    let limit = number(limit).filter(|&limit| limit < 1 << 60)?;
    let stat = read_to_string(dir.join("memory.stat")).unwrap_or_default();
    let files = ["inactive_file", "active_file"].map(|name| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().parse::<u64>().ok()).unwrap_or(0)
    });
    let used = number(used)?.saturating_sub(files.iter().sum());
    Some(Available { left: limit.saturating_sub(used), limit, grouped: true })
}

/// Human-readable bytes.
pub fn gib(bytes: f64) -> String {
    match bytes {
        b if b < 100.0 * 1024.0 * 1024.0 => format!("{:.1} MiB", b / 1024f64.powi(2)),
        b => format!("{:.1} GiB", b / 1024f64.powi(3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(all: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in all {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    const MACHINE: (&str, &str) =
        ("proc/meminfo", "MemTotal:  16384 kB\nMemFree: 1 kB\nMemAvailable:  8192 kB\n");

    #[test]
    fn the_machine_tells_where_no_group_does() {
        let dir = files(&[
            MACHINE,
            ("proc/self/cgroup", "0::/a\n"),
            ("sys/fs/cgroup/a/memory.max", "max\n"),
        ]);
        let found = under(dir.path()).unwrap();
        assert_eq!(found, Available { left: 8 << 20, limit: 16 << 20, grouped: false });
        assert_eq!(under(files(&[]).path()), None);
    }

    #[test]
    fn the_tightest_group_above_counts() {
        let dir = files(&[
            MACHINE,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "4194304\n"),
            ("sys/fs/cgroup/a/memory.current", "3145728\n"),
            ("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 1048576\nactive_file 0\n"),
        ]);
        let found = under(dir.path()).unwrap();
        assert_eq!(found, Available { left: 2 << 20, limit: 4 << 20, grouped: true });
    }

    #[test]
    fn groups_of_the_first_version_count_also_where_the_path_is_the_hosts() {
        let dir = files(&[
            MACHINE,
            ("proc/self/cgroup", "5:cpu:/x\n4:memory:/docker/abc\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n"),
        ]);
        let found = under(dir.path()).unwrap();
        assert_eq!(found, Available { left: 1 << 20, limit: 2 << 20, grouped: true });
    }
}
