//! The location of an array: an npy file, or a member of an npz archive.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnarl_common::{Error, Result, ResultExt};
use tempfile::TempDir;

use super::input::Input;

/// A byte range of a file that holds one npy array.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// The file to open.
    pub path: PathBuf,
    /// Name in messages: `x.npy`, or `x.npz[member]`.
    pub name: String,
    /// Start of the npy header.
    pub start: u64,
    /// End of the array.
    pub end: u64,
    /// Keeps an unpacked member until the last reader is gone.
    _unpacked: Option<Arc<TempDir>>,
}

impl Source {
    /// A whole npy file.
    pub fn npy(path: &Path) -> Result<Self> {
        // Its error names the place if the file does not exist.
        Input::open(path)?;
        let end = std::fs::metadata(path).at(path)?.len();
        let name = path.display().to_string();
        Ok(Self { path: path.into(), name, start: 0, end, _unpacked: None })
    }

    /// A file that was unpacked into `dir`, called `name` in messages.
    fn unpacked(path: PathBuf, name: String, dir: &Arc<TempDir>) -> Result<Self> {
        Ok(Self { name, _unpacked: Some(dir.clone()), ..Self::npy(&path)? })
    }
}

/// The members of an npz archive. Stored members are read in place; compressed ones are unpacked
/// to a temporary directory on access.
pub(super) struct Npz {
    path: PathBuf,
    archive: zip::ZipArchive<File>,
    members: BTreeMap<String, usize>,
    scratch: Arc<TempDir>,
}

impl Npz {
    /// Opens the archive; compressed members will be unpacked below `scratch`.
    pub fn open(path: &Path, scratch: &Path) -> Result<Self> {
        let bad = |e| Error::invalid(format!("{}: not a readable npz file: {e}", path.display()));
        Input::open(path)?;
        let archive = zip::ZipArchive::new(File::open(path).at(path)?).map_err(bad)?;
        let mut members = BTreeMap::new();
        for i in 0..archive.len() {
            let Some(name) = archive.name_for_index(i) else { continue };
            let name = name.map_err(bad)?;
            members.insert(name.strip_suffix(".npy").unwrap_or(&name).to_string(), i);
        }
        let scratch = Arc::new(tempfile::tempdir_in(scratch).at(scratch)?);
        Ok(Self { path: path.into(), archive, members, scratch })
    }

    /// Names of the members, without `.npy`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// The member `name`.
    ///
    /// # Errors
    /// Lists the members there are if it is missing.
    pub fn member(&mut self, name: &str) -> Result<Source> {
        let Some(&index) = self.members.get(name) else {
            let known: Vec<&str> = self.names().collect();
            return Err(Error::invalid(format!("{}: no array '{name}'", self.path.display()))
                .hint(format!("it has: {}", known.join(", "))));
        };
        let label = format!("{}[{name}]", self.path.display());
        let bad = |e: &dyn std::fmt::Display| Error::invalid(format!("{label}: {e}"));
        let mut entry = self.archive.by_index(index).map_err(|e| bad(&e))?;
        if entry.compression() == zip::CompressionMethod::Stored
            && let Some(start) = entry.data_start()
        {
            // The archive's directory says where members end: no reader may take memory for more than there is.
            let length = std::fs::metadata(&self.path).at(&self.path)?.len();
            let end = start.checked_add(entry.size()).filter(|&end| end <= length);
            let end = end.ok_or_else(|| bad(&"it reaches beyond the end of the archive"))?;
            return Ok(Source {
                path: self.path.clone(),
                name: label,
                start,
                end,
                _unpacked: None,
            });
        }
        let path = self.scratch.path().join(format!("{index}.npy"));
        let mut file = File::create(&path).at(&path)?;
        std::io::copy(&mut entry, &mut file).map_err(|e| bad(&e))?;
        Source::unpacked(path, label, &self.scratch)
    }
}
