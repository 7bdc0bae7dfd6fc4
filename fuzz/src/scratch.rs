//! Folders for the files of a run, in memory where the system has such a place.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tempfile::TempDir;

/// The folder of all of them: that of `fuzz/run`, which removes it, as a fuzzer ends without dropping what it has.
static PARENT: LazyLock<PathBuf> = LazyLock::new(|| {
    let shared = Path::new("/dev/shm");
    match std::env::var_os("GNARL_FUZZ_DIR") {
        Some(given) => given.into(),
        None if shared.is_dir() => shared.into(),
        None => std::env::temp_dir(),
    }
});

/// A new folder, which is removed when dropped.
///
/// # Panics
/// If none can be made.
pub fn folder() -> TempDir {
    TempDir::with_prefix_in("gnarl-fuzz-", &*PARENT).expect("a folder for temporary files")
}

/// Writes a file of the run.
///
/// # Panics
/// If it cannot be written.
pub fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("a temporary file");
}
