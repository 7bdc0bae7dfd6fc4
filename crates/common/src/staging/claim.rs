//! Exclusive claims on output places.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::Value;

use super::interrupt;
use super::lock::LockFile;
use super::sweep::{lock_of, sweep, sweep_others};
use crate::error::{Error, Result, ResultExt};

/// A claim that makes this process the only writer of a place while the claim lives. Writers of
/// this process join the existing claim: a command claims its output before it reads any input, so
/// that a conflict is reported at once and not after an hour.
#[derive(Debug, Clone)]
pub struct Claim(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The parent folder, and the name in it.
    parent: PathBuf,
    name: String,
    /// Recorded with the output, beside the writer's own metadata.
    request: Value,
    /// True while a writer works under the claim.
    joined: AtomicBool,
    /// None within a temporary folder of this process, which is locked as a whole.
    _lock: Option<LockFile>,
}

/// Claims of this process by place.
static CLAIMS: Mutex<BTreeMap<PathBuf, Weak<Inner>>> = Mutex::new(BTreeMap::new());

impl Claim {
    /// Claims `out`; `marker` is the file that identifies folders of the kind to be written, such
    /// as `dataset.json`. An existing one is replaced in the end if `replace` is set. The parent
    /// folder of `out` is created if necessary, and unfinished output of earlier processes in it is
    /// removed.
    ///
    /// # Errors
    /// [`crate::Kind::Usage`] if a folder of that kind exists and is not to be replaced, if another
    /// kind of nonempty folder exists, or if another process is writing there.
    pub fn new(out: &Path, marker: &str, replace: bool) -> Result<Self> {
        Self::with_request(out, marker, replace, Value::Null)
    }

    /// As [`Self::new`], with a `request` to be recorded with the output.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_request(out: &Path, marker: &str, replace: bool, request: Value) -> Result<Self> {
        let (parent, name) = place(out)?;
        std::fs::create_dir_all(&parent).at(&parent)?;
        let lock = LockFile::acquire(&lock_of(&parent, &name), out, "is being written")?;
        sweep(&parent, &name)?;
        sweep_others(&parent, &name)?;
        // After the lock, before which another process could be about to make it, and after the sweep,
        // which can restore what was there.
        check(out, marker, replace)?;
        let key = key(&parent, &name)?;
        let inner =
            Inner { parent, name, request, joined: AtomicBool::new(false), _lock: Some(lock) };
        let inner = Arc::new(inner);
        let mut claims = CLAIMS.lock().unwrap_or_else(PoisonError::into_inner);
        claims.retain(|_, claim| claim.strong_count() > 0);
        claims.insert(key, Arc::downgrade(&inner));
        Ok(Self(inner))
    }

    /// The claim for a writer of this process: the existing one, or a new one.
    pub(super) fn join(out: &Path, marker: &str) -> Result<Joined> {
        let (parent, name) = place(out)?;
        if interrupt::is_temporary(&parent) {
            return Ok(Joined(Self::inside(parent, name)));
        }
        let known = key(&parent, &name).ok().and_then(|key| {
            CLAIMS.lock().unwrap_or_else(PoisonError::into_inner).get(&key)?.upgrade()
        });
        let claim = match known {
            Some(inner) => Self(inner),
            None => Self::new(out, marker, false)?,
        };
        if claim.0.joined.swap(true, Ordering::SeqCst) {
            return Err(Error::usage(format!(
                "{}: is being written by this process already",
                out.display()
            )));
        }
        Ok(Joined(claim))
    }

    /// A claim on a place within a temporary folder of this process.
    fn inside(parent: PathBuf, name: String) -> Self {
        let joined = AtomicBool::new(true);
        Self(Arc::new(Inner { parent, name, request: Value::Null, joined, _lock: None }))
    }

    /// The parent folder of the place.
    pub(super) fn parent(&self) -> &Path {
        &self.0.parent
    }

    /// The name of the place in its parent.
    pub(super) fn name(&self) -> &str {
        &self.0.name
    }

    /// The recorded request; null if none was given.
    pub fn request(&self) -> &Value {
        &self.0.request
    }
}

/// A claim in use by a writer; the next one may join when it is dropped.
#[derive(Debug)]
pub(super) struct Joined(Claim);

impl Joined {
    pub fn claim(&self) -> &Claim {
        &self.0
    }
}

impl std::ops::Deref for Joined {
    type Target = Claim;

    fn deref(&self) -> &Claim {
        &self.0
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.0.joined.store(false, Ordering::SeqCst);
    }
}

/// The parent folder of `out`, and its name there.
fn place(out: &Path) -> Result<(PathBuf, String)> {
    let Some(name) = out.file_name().map(|name| name.to_string_lossy().into_owned()) else {
        return Err(Error::usage(format!("{}: not the name of a directory", out.display()))
            .hint("give it a name, such as data/graph"));
    };
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok((parent.unwrap_or(Path::new(".")).into(), name))
}

/// A canonical name of a place.
fn key(parent: &Path, name: &str) -> Result<PathBuf> {
    Ok(parent.canonicalize().at(parent)?.join(name))
}

/// Returns an error if `out` exists and is not to be replaced.
fn check(out: &Path, marker: &str, replace: bool) -> Result<()> {
    let Ok(metadata) = std::fs::symlink_metadata(out) else { return Ok(()) };
    let followed = if metadata.is_symlink() { std::fs::metadata(out).ok() } else { Some(metadata) };
    let is_folder = followed.is_some_and(|metadata| metadata.is_dir());
    let empty = std::fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none());
    if is_folder && empty {
        return Ok(());
    }
    let kind = marker.strip_suffix(".json").unwrap_or(marker);
    if !is_folder || !out.join(marker).exists() {
        return Err(Error::usage(format!("{}: exists and is not a {kind}", out.display()))
            .hint("choose another --out, or remove it"));
    }
    if !replace {
        return Err(Error::usage(format!("{}: holds a {kind} already", out.display()))
            .hint("replace it with --force, or choose another --out"));
    }
    // The name of a link would be exchanged for the folder's; whatever it leads to would stay.
    match out.is_symlink() {
        true => Err(Error::usage(format!("{}: is a link, which is not replaced", out.display()))
            .hint("give the folder that it leads to as --out")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Staging;
    use super::*;

    const MARKER: &str = "dataset.json";

    fn write(out: &Path, text: &str) -> Result<()> {
        let staging = Staging::create(out, MARKER)?;
        std::fs::write(staging.path().join(MARKER), text).unwrap();
        staging.commit()
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_replaced_unless_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("g");
        write(&out, "first").unwrap();
        let error = write(&out, "second").unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("holds a dataset already"), "{error}");
        let claim = Claim::new(&out, MARKER, true).unwrap();
        write(&out, "second").unwrap();
        assert_eq!(std::fs::read_to_string(out.join(MARKER)).unwrap(), "second");
        drop(claim);
        assert_eq!(names(dir.path()), ["g"], "neither lock nor temporary stays");
        std::fs::remove_file(out.join(MARKER)).unwrap();
        std::fs::write(out.join("thesis.tex"), "").unwrap();
        let error = Claim::new(&out, MARKER, true).unwrap_err().to_string();
        assert!(error.contains("is not a dataset"), "{error}");
    }

    #[test]
    fn a_place_has_one_writer() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("g");
        let first = Staging::create(&out, MARKER).unwrap();
        let error = Staging::create(&dir.path().join(".").join("g"), MARKER).unwrap_err();
        assert!(error.to_string().contains("is being written by"), "{error}");
        first.commit().unwrap();
        assert_eq!(names(dir.path()), ["g"]);
    }

    #[test]
    fn leftovers_of_killed_processes_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["g.tmp-abc123", "h.tmp-XYZ987", "kept.tmp-abc123", "g.tmp-notes"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        // `h` was begun by a process that is gone; of `kept` nothing says that it is ours.
        std::fs::write(dir.path().join(".h.lock"), "process 1 on host").unwrap();
        write(&dir.path().join("g"), "whole").unwrap();
        assert_eq!(names(dir.path()), ["g", "g.tmp-notes", "kept.tmp-abc123"]);
    }

    #[test]
    fn leftovers_of_running_processes_stay() {
        let dir = tempfile::tempdir().unwrap();
        let running = Staging::create(&dir.path().join("h"), MARKER).unwrap();
        write(&dir.path().join("g"), "whole").unwrap();
        assert!(running.path().exists());
    }

    #[test]
    fn a_folder_about_to_be_replaced_is_restored() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("g.tmp-abc123.old")).unwrap();
        std::fs::write(dir.path().join("g.tmp-abc123.old").join(MARKER), "old").unwrap();
        let claim = Claim::new(&dir.path().join("g"), MARKER, true);
        drop(claim);
        write(&dir.path().join("f"), "whole").unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("g").join(MARKER)).unwrap(), "old");
    }
}
