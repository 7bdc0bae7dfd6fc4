//! Damage to the files of a folder: bytes that are overwritten, cut off or put in, and JSON with other values.
//!
//! A folder is made once; each run damages some files, and the next begins with what there was.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::input::Input;
use crate::scratch;

/// Most edits of a run.
const EDITS: usize = 8;

/// A folder and what its files hold.
pub struct Folder {
    dir: TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Folder {
    /// The folder that `make` fills.
    ///
    /// # Panics
    /// If files cannot be read.
    pub fn new(make: impl FnOnce(&Path)) -> Self {
        let dir = scratch::folder();
        make(dir.path());
        let mut files = Vec::new();
        let mut folders = vec![dir.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("the fixture") {
                let path = entry.expect("the fixture").path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => files.push((path.clone(), std::fs::read(&path).expect("a file"))),
                }
            }
        }
        // Inputs name files by number. Manifests come first, as most readers read nothing else before.
        files.sort_by_key(|(path, _)| {
            (path.extension().is_none_or(|of| of != "json"), path.clone())
        });
        Self { dir, files }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Runs `work` while files are damaged as the input says.
    pub fn damaged<T>(&self, input: &mut Input<'_>, work: impl FnOnce(&Path) -> T) -> T {
        let mut changed: Vec<(usize, Vec<u8>)> = Vec::new();
        while !input.is_empty() && changed.len() < EDITS {
            let file = usize::from(input.byte()) % self.files.len();
            let before = changed.iter().position(|(of, _)| *of == file);
            let mut bytes = match before {
                Some(at) => changed.remove(at).1,
                None => self.files[file].1.clone(),
            };
            edit(&mut bytes, input);
            changed.push((file, bytes));
        }
        for (file, bytes) in &changed {
            scratch::write(&self.files[*file].0, bytes);
        }
        let done = work(self.path());
        for (file, _) in &changed {
            let (path, bytes) = &self.files[*file];
            scratch::write(path, bytes);
        }
        done
    }
}

/// One edit: its kind, its place, and what comes there.
fn edit(bytes: &mut Vec<u8>, input: &mut Input<'_>) {
    let kind = input.byte();
    let at = usize::from(input.short());
    let start = at % (bytes.len() + 1);
    match kind % 8 {
        0 => {
            let new = input.section();
            let end = bytes.len().min(start + new.len());
            bytes[start..end].copy_from_slice(&new[..end - start]);
        }
        1 => bytes.truncate(start),
        2 => drop(bytes.splice(start..start, input.section().iter().copied())),
        3 => *bytes = input.section().to_vec(),
        // Values of an npy file begin after 128 bytes: one of them, of 4 or 8 bytes.
        4 | 5 => {
            let width = if kind % 8 == 4 { 4 } else { 8 };
            let new = input.bytes(width);
            let rows = bytes.len().saturating_sub(128) / width;
            if rows > 0 && new.len() == width {
                let start = 128 + at % rows * width;
                bytes[start..start + width].copy_from_slice(new);
            }
        }
        _ => {
            let Ok(mut value) = serde_json::from_slice::<Value>(bytes) else { return };
            let new = input.section();
            let mut left = at % nodes(&value).max(1);
            replace(&mut value, &mut left, new);
            *bytes = serde_json::to_vec(&value).expect("JSON");
        }
    }
}

/// Number of values of a JSON document, those within others included.
fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(all) => all.iter().map(nodes).sum(),
        Value::Object(all) => all.values().map(nodes).sum::<usize>(),
        _ => 0,
    }
}

/// Replaces value number `left`, in the order of the document; true if that was done.
fn replace(value: &mut Value, left: &mut usize, new: &[u8]) -> bool {
    if *left == 0 {
        change(value, new);
        return true;
    }
    *left -= 1;
    match value {
        Value::Array(all) => all.iter_mut().any(|one| replace(one, left, new)),
        Value::Object(all) => all.values_mut().any(|one| replace(one, left, new)),
        _ => false,
    }
}

/// Another value: JSON as it is given, numbers by the bytes, lists with one item less or more.
fn change(value: &mut Value, new: &[u8]) {
    if let Ok(given) = serde_json::from_slice(new) {
        *value = given;
        return;
    }
    match value {
        Value::Number(_) => {
            let mut bytes = [0; 8];
            let len = new.len().min(8);
            bytes[..len].copy_from_slice(&new[..len]);
            *value = u64::from_le_bytes(bytes).into();
        }
        Value::String(text) => *text = String::from_utf8_lossy(new).into_owned(),
        Value::Array(all) if new.first().is_some_and(|first| first % 2 == 1) => {
            all.extend(all.last().cloned());
        }
        Value::Array(all) => drop(all.pop()),
        Value::Object(all) => drop(all.pop()),
        other => *other = Value::Null,
    }
}

/// The last entry of an object, as of a list.
trait Pop {
    fn pop(&mut self) -> Option<Value>;
}

impl Pop for serde_json::Map<String, Value> {
    fn pop(&mut self) -> Option<Value> {
        let last = self.keys().next_back().cloned()?;
        self.remove(&last)
    }
}
