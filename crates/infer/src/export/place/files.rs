//! Tables in files: one, or two that belong together.

use std::fs::File;
use std::path::{Path, PathBuf};

use gnarl_common::staging::{Staging, sync_parent};
use gnarl_common::{Error, Result, ResultExt, integrity};

use crate::export::table::Written;

/// Suffix of the name that is claimed for a table. The name of the table itself would be that of a
/// folder: only folders are claimed.
const SUFFIX: &str = ".export";

/// Files being written in a temporary folder beside their place. Dropping it removes them, and so
/// does an interruption.
pub struct Files {
    /// The table's file first.
    files: Vec<PathBuf>,
    force: bool,
    staging: Staging,
}

impl Files {
    /// Claims the places of `out` and of `others` in the same folder.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if a file exists and is not to be replaced, if a folder or a
    /// link is in the way, or if another process is writing there.
    pub fn claim(out: &Path, others: Vec<PathBuf>, force: bool) -> Result<Self> {
        let mut files = vec![out.to_path_buf()];
        files.extend(others);
        // Before the claim, which creates the folder of `out`.
        free(&files, force)?;
        let mut claimed = out.as_os_str().to_owned();
        claimed.push(SUFFIX);
        let staging = Staging::create(Path::new(&claimed), "export")?;
        Ok(Self { files, force, staging })
    }

    /// The names of the files.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The path of `file` until it has its name.
    pub fn temporary(&self, file: &Path) -> PathBuf {
        self.staging.path().join(file.file_name().unwrap_or_default())
    }

    /// Gives all files their names, `out` last.
    ///
    /// # Errors
    /// If the file system reports an error, a file has come into the way, or one that was read is damaged or has changed.
    pub fn commit(self) -> Result<Written> {
        integrity::settle()?;
        let mut bytes = 0;
        for file in &self.files {
            // Takes long, and so comes before the first file has its name: between the names of two
            // files that belong together, there is hardly time for an interruption.
            let temporary = File::open(self.temporary(file)).at(file)?;
            temporary.sync_all().at(file)?;
            bytes += temporary.metadata().at(file)?.len();
        }
        free(&self.files, self.force)?;
        for (i, file) in self.files.iter().enumerate().rev() {
            if let Err(e) = std::fs::rename(self.temporary(file), file) {
                // A file beside an older table would be taken for its own.
                for renamed in &self.files[i + 1..] {
                    let _ = std::fs::remove_file(renamed);
                }
                return Err(Error::io(file, e));
            }
        }
        // They are in one folder.
        self.files.first().map_or(Ok(()), |out| sync_parent(out))?;
        Ok(Written { files: self.files, bytes })
    }
}

/// Makes sure that files can have their names.
fn free(files: &[PathBuf], force: bool) -> Result<()> {
    for file in files {
        let Ok(metadata) = std::fs::symlink_metadata(file) else { continue };
        let place = file.display();
        if metadata.is_symlink() {
            return Err(Error::usage(format!("{place}: is a link, which is not replaced"))
                .hint("give the file that it leads to as --out"));
        }
        if !metadata.is_file() {
            return Err(Error::usage(format!("{place}: exists and is not a file"))
                .hint("choose another --out, or remove it"));
        }
        if !force {
            return Err(Error::usage(format!("{place}: exists already"))
                .hint("replace it with --force, or choose another --out"));
        }
    }
    Ok(())
}
