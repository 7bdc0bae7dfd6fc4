//! Runs that are kept in an object store.
//!
//! A run works in a folder of this host. Its files are uploaded when they have changed, by a thread of their own: first
//! what a checkpoint refers to, the checkpoint after that, so that the store has at any time a run to go on from. A
//! store that cannot be reached is told, and tried again later; the run goes on meanwhile.
//!
//! The object `writer.json` names the process that trains. A process that finds another one there stops: two would mix
//! their epochs. A copy in the working folder tells a later process that no other one has trained since.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use gnarl_common::{Context, Result, ResultExt};
use gnarl_objects::{Mirror, Uri, working_folder};
use serde_json::{Value, json};

use super::names::{
    CLASSES, CONFIG, GRAPH, METRICS, MODEL, PROFILE, RELATIONS, REPORT, SUMMARY, TRACE, WRITER,
};
use super::place::Contents;
use super::provenance::PROVENANCE;
use crate::run::checkpoint::{CHECKPOINT, atomic_write};
use crate::run::handshake::host;

/// Files of a run, in the order in which they are uploaded.
pub(super) const FILES: [&str; 12] = [
    CONFIG, PROVENANCE, GRAPH, METRICS, MODEL, CHECKPOINT, RELATIONS, CLASSES, TRACE, PROFILE,
    REPORT, SUMMARY,
];

/// The version of the checkpoint in the store that this host has or had; a file of the working folder.
pub(super) const VERSION: &str = "uploaded.version";
/// The version of no checkpoint.
const NONE: &str = "none";

/// The contents of an address.
pub(super) fn in_store(dir: &Path) -> Result<Contents> {
    let mirror = open(dir)?;
    let names = mirror.names().while_doing(|| "looking for runs")?;
    let mut names: Vec<String> =
        names.iter().filter_map(|name| name.split('/').next()).map(String::from).collect();
    names.dedup();
    // It may have reached this host and not the store.
    let record = mirror.folder().join(VERSION);
    if is_newest(&record, None) && mirror.folder().join(CHECKPOINT).exists() {
        names.push(CHECKPOINT.into());
    }
    Ok(if names.is_empty() { Contents::Nothing } else { Contents::Folder(names) })
}

/// Returns whether the files of this host are as new as the checkpoint in the store, which has this version.
fn is_newest(record: &Path, version: Option<&str>) -> bool {
    std::fs::read_to_string(record).is_ok_and(|known| known == version.unwrap_or(NONE))
}

/// The files of a run, at the address `dir` and in the working folder of this host.
fn open(dir: &Path) -> Result<Mirror> {
    let uri = Uri::parse(&dir.to_string_lossy()).while_doing(|| "output.dir")?;
    let folder = working_folder(&uri)?;
    Mirror::open(&uri, folder)
}

/// A run's files in a store, while this process trains.
#[derive(Debug)]
pub(super) struct RunObjects {
    mirror: Mirror,
    /// The content of `writer.json`.
    writer: String,
}

impl RunObjects {
    /// The files of the run at the address `dir`.
    ///
    /// # Errors
    /// If the address or the environment is invalid.
    pub fn open(dir: &Path) -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let writer = json!({
            "host": host(),
            "process": std::process::id(),
            "started": now.as_secs(),
            // Tells two of one process apart.
            "nanoseconds": now.subsec_nanos(),
        });
        Ok(Self { mirror: open(dir)?, writer: writer.to_string() })
    }

    /// The working folder.
    pub fn folder(&self) -> PathBuf {
        self.mirror.folder().into()
    }

    /// Fetches the settings of a run that has a checkpoint in the store; `false` if it has none.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub fn pull_settings(&self) -> Result<bool> {
        if self.mirror.version(CHECKPOINT)?.is_none() {
            return Ok(false);
        }
        self.mirror.pull(&[CONFIG, PROVENANCE])?;
        Ok(true)
    }

    /// Makes the files of the working folder those of the store, unless they are newer, of which uploads have failed:
    /// if they are of the process `before` that had the run, or if the checkpoint in the store has the noted version.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub fn pull(&self, before: Option<&[u8]>) -> Result<()> {
        // The version of an upload whose answer was lost is unknown.
        let last = std::fs::read(self.mirror.folder().join(WRITER)).ok();
        if before.is_some() && before == last.as_deref() {
            return Ok(());
        }
        let version = self.mirror.version(CHECKPOINT)?;
        let record = self.mirror.folder().join(VERSION);
        if is_newest(&record, version.as_deref()) {
            return Ok(());
        }
        // Half of a transfer is no version.
        if record.exists() {
            std::fs::remove_file(&record).at(&record)?;
        }
        self.mirror.pull(&FILES)?;
        self.record(version)
    }

    /// Notes the version of the checkpoint in the store that the working folder has, or is newer than.
    fn record(&self, version: Option<String>) -> Result<()> {
        let version = version.unwrap_or_else(|| NONE.into());
        atomic_write(&self.mirror.folder().join(VERSION), version.as_bytes())
    }

    /// Takes the run over: another process stops at its next upload. Returns the `writer.json` of the one before.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub fn take(&self) -> Result<Option<Vec<u8>>> {
        let before = self.mirror.read(WRITER)?;
        if let Some(other) = &before {
            tracing::warn!(
                "{}: {} has trained there and did not end, or still trains; it stops at its next checkpoint",
                self.mirror.uri(),
                described(other)
            );
        }
        self.mirror.write(WRITER, self.writer.as_bytes())?;
        Ok(before)
    }

    /// Removes the files named `stale` from the store, and uploads the settings. From here on the files of the working
    /// folder are of this process.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub fn begin(&self, stale: &[&str]) -> Result<()> {
        self.mirror.remove(stale)?;
        if stale.contains(&CHECKPOINT) {
            self.record(None)?;
        }
        for name in [CONFIG, PROVENANCE] {
            self.mirror.push(&self.mirror.folder().join(name), name)?;
        }
        atomic_write(&self.mirror.folder().join(WRITER), self.writer.as_bytes())
    }

    /// Uploads some of [`FILES`], in their order.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub fn push(&self, names: &[&str]) -> Result<()> {
        let snapshot = Snapshot::of(self.mirror.folder(), names)?;
        for name in FILES.iter().filter(|name| names.contains(name)) {
            self.mirror.push(&snapshot.0.join(name), name)?;
        }
        if names.contains(&CHECKPOINT) {
            self.record(self.mirror.version(CHECKPOINT)?)?;
        }
        Ok(())
    }

    /// Leaves the run to others, unless another process has it already.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub fn leave(&self) -> Result<()> {
        match self.mirror.read(WRITER)? {
            Some(writer) if writer == self.writer.as_bytes() => self.mirror.remove(&[WRITER]),
            _ => Ok(()),
        }
    }

    /// The address.
    pub fn uri(&self) -> &Uri {
        self.mirror.uri()
    }

    /// The process that has taken the run over, if there is one.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub fn other(&self) -> Result<Option<String>> {
        let other = self.mirror.read(WRITER)?;
        let other = other.filter(|other| other != self.writer.as_bytes());
        Ok(other.map(|other| described(&other)))
    }
}

/// Uploads `name` of a finished run at the address `dir`, and removes the working folder.
///
/// # Errors
/// If the store cannot be reached.
pub(super) fn add(dir: &Path, name: &str) -> Result<()> {
    let mirror = open(dir)?;
    let folder = mirror.folder();
    mirror.push(&folder.join(name), name)?;
    std::fs::remove_dir_all(folder).at(folder)
}

/// The process of a `writer.json`.
fn described(writer: &[u8]) -> String {
    let writer: Value = serde_json::from_slice(writer).unwrap_or_default();
    let host = writer["host"].as_str().unwrap_or("an unknown host");
    match writer["process"].as_u64() {
        Some(process) => format!("process {process} of {host}"),
        None => format!("a process of {host}"),
    }
}

/// Versions of files that belong together, in a folder of their own; removed when dropped.
struct Snapshot(PathBuf);

/// The folder of snapshots within the working folder.
const SNAPSHOT: &str = "outgoing";

impl Snapshot {
    /// The files `names` of `folder` as they are now. Files are replaced by renaming and stay as they were behind a
    /// link, but for the metrics: these grow, and are copied last, so that they have all epochs of the checkpoint.
    fn of(folder: &Path, names: &[&str]) -> Result<Self> {
        let place = folder.join(SNAPSHOT);
        if place.exists() {
            std::fs::remove_dir_all(&place).at(&place)?;
        }
        std::fs::create_dir(&place).at(&place)?;
        let snapshot = Self(place);
        let (grows, replaced): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|name| **name == METRICS);
        for name in replaced.into_iter().chain(grows) {
            let (from, to) = (folder.join(name), snapshot.0.join(name));
            if name == METRICS || std::fs::hard_link(&from, &to).is_err() {
                std::fs::copy(&from, &to).at(&from)?;
            }
        }
        Ok(snapshot)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
