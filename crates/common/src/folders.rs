//! Folders of the file system.

use std::path::Path;

use crate::{Result, ResultExt};

/// Bytes of the files in a folder and the folders below it.
///
/// # Errors
/// If one of them cannot be read.
pub fn bytes_in(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).at(folder)? {
        let entry = entry.at(folder)?;
        let metadata = entry.metadata().at(entry.path())?;
        bytes += if metadata.is_dir() { bytes_in(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

/// Returns whether a name with slashes stays in the folder that it is relative to.
pub fn is_inside(name: &str) -> bool {
    let part = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0', ':']);
    name.split('/').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_below_count() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("below")).unwrap();
        std::fs::write(dir.path().join("a"), "12345").unwrap();
        std::fs::write(dir.path().join("below/b"), "123").unwrap();
        assert_eq!(bytes_in(dir.path()).unwrap(), 8);
        assert!(bytes_in(&dir.path().join("none")).is_err());
    }
}
