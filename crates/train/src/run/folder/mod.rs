//! The folder of a run: its files, and the rules for existing ones.

mod begin;
mod graph;
mod metrics;
mod metrics_file;
mod names;
mod objects;
mod place;
mod provenance;
mod same;
mod uploads;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gnarl_common::staging::{LockFile, create_folder, sweep_files};
use gnarl_common::{Error, Result, ResultExt};
use gnarl_config::{OutputSection, RunConfig, absolute};
use gnarl_objects::is_uri;

use crate::data::prepared::digest;
use crate::embeddings::EMBEDDINGS;
use crate::run::checkpoint::{CHECKPOINT, atomic_write};
use crate::telemetry::EventFile;

pub use begin::Begin;
pub use graph::{GraphRecord, MOST_READ, Unmeasured};
pub use names::{
    CLASSES, CONFIG, GRAPH, METRICS, MODEL, PARTITION, PROFILE, RELATIONS, REPORT, SUMMARY, TRACE,
};
pub use provenance::{PROVENANCE, Provenance};

use metrics_file::MetricsFile;
use names::{LOCK, TENSORBOARD};
use objects::{RunObjects, in_store};
use uploads::Uploads;

/// A run's folder, locked for this process.
#[derive(Debug)]
pub struct RunFolder {
    dir: PathBuf,
    /// The path or the address that the user knows it by.
    place: PathBuf,
    metrics: Mutex<Option<MetricsFile>>,
    /// The event file once it is begun, if there is to be one.
    events: Option<Mutex<Option<EventFile>>>,
    /// None unless it is kept in an object store.
    uploads: Mutex<Option<Uploads>>,
    /// None on ranks other than the first.
    _lock: Option<LockFile>,
}

impl RunFolder {
    /// Prepares the folder for `config`; `true` if there is a checkpoint to continue from. A
    /// finished run stays: a new one goes beside it. `fingerprint` identifies the data, `command` has the words that
    /// started the run, where a program gives them.
    ///
    /// # Errors
    /// If the folder cannot be written, holds an unfinished run or something else, is in use by
    /// another process, or a different run is to be resumed.
    pub fn open(
        config: &RunConfig,
        begin: Begin,
        (fingerprint, command): (&str, Vec<String>),
    ) -> Result<(Self, bool)> {
        let remote = is_uri(&config.output.dir);
        let at = if remote { in_store } else { place::on_disk };
        let place = place::choose(&config.output.dir, begin, at)?;
        let objects = remote.then(|| RunObjects::open(&place)).transpose()?;
        let dir = objects.as_ref().map_or_else(|| place.clone(), RunObjects::folder);
        create_folder(&dir)?;
        let lock = LockFile::acquire(&dir.join(LOCK), &place, "a run is being trained there")?;
        let uploads = match objects {
            Some(objects) => {
                // Whoever trains there stops for a run that goes on, and for no other.
                if begin == Begin::Resume && objects.pull_settings()? {
                    check_same(&dir, config, fingerprint)?;
                }
                let uploads = Uploads::start(objects)?;
                let before = uploads.objects().take()?;
                if begin == Begin::Resume {
                    uploads.objects().pull(before.as_deref())?;
                }
                Some(uploads)
            }
            None => None,
        };
        if place != config.output.dir {
            match begin {
                Begin::Fresh => tracing::info!(
                    "{} holds a finished run; this one goes to {}",
                    config.output.dir.display(),
                    place.display()
                ),
                _ => tracing::info!("the last run of its name is in {}", place.display()),
            }
        }
        let resume = begin == Begin::Resume && dir.join(CHECKPOINT).exists();
        let stale: &[&str] = match resume {
            true => &[SUMMARY, RELATIONS, CLASSES, PROFILE, TRACE, REPORT],
            false => &[
                CHECKPOINT, METRICS, MODEL, SUMMARY, RELATIONS, CLASSES, PROFILE, TRACE, REPORT,
                GRAPH, PROVENANCE,
            ],
        };
        if resume {
            check_same(&dir, config, fingerprint)?;
        }
        for name in stale {
            let path = dir.join(name);
            if path.exists() {
                std::fs::remove_file(&path).at(&path)?;
            }
        }
        sweep_files(&dir)?;
        let rows = dir.join(EMBEDDINGS);
        if !resume && rows.exists() {
            std::fs::remove_dir_all(&rows).at(&rows)?;
        }
        // Its curves begin anew, or have epochs that are trained again.
        EventFile::remove(&dir.join(TENSORBOARD))?;
        let kept = absolute(&RunConfig {
            output: OutputSection { dir: place.clone(), ..config.output.clone() },
            ..config.clone()
        });
        let text = kept.to_kept()?;
        atomic_write(&dir.join(CONFIG), text.as_bytes())?;
        if !resume {
            Provenance::now(config, fingerprint, command)?.write(&dir)?;
        }
        if let Some(uploads) = &uploads {
            uploads.objects().begin(stale)?;
        }
        let folder = Self {
            dir,
            place,
            metrics: Mutex::new(None),
            events: config.output.tensorboard.then(|| Mutex::new(None)),
            uploads: Mutex::new(uploads),
            _lock: Some(lock),
        };
        if resume {
            // An upload may have failed before.
            folder.changed(&[METRICS, MODEL, CHECKPOINT])?;
        }
        Ok((folder, resume))
    }

    /// The folder that another rank prepared in `dir`.
    pub fn join(dir: PathBuf) -> Self {
        Self {
            place: dir.clone(),
            dir,
            metrics: Mutex::new(None),
            events: None,
            uploads: Mutex::new(None),
            _lock: None,
        }
    }

    /// Possible places of a partition for the same run file: in this folder, and in those of
    /// earlier runs of its name.
    pub fn partitions(&self, config: &RunConfig) -> Vec<PathBuf> {
        let others = place::all(&config.output.dir);
        let folders = std::iter::once(self.dir.clone()).chain(others);
        folders.map(|folder| folder.join(PARTITION)).collect()
    }

    /// The path or the address that the user knows the folder by.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Uploads some of its files soon, those that exist, if it is kept in an object store.
    ///
    /// # Errors
    /// If another process has taken the run over.
    pub fn changed(&self, names: &[&'static str]) -> Result<()> {
        let uploads = self.uploads.lock().unwrap_or_else(|e| e.into_inner());
        let names: Vec<&str> =
            names.iter().copied().filter(|name| self.dir.join(name).exists()).collect();
        uploads.as_ref().map_or(Ok(()), |uploads| uploads.changed(&names))
    }

    /// Waits for uploads, if it is kept in an object store.
    ///
    /// # Errors
    /// If one fails.
    pub fn finish_uploads(&self) -> Result<()> {
        let uploads = self.uploads.lock().unwrap_or_else(|e| e.into_inner()).take();
        uploads.map_or(Ok(()), Uploads::finish)
    }

    /// Path of the folder on this host.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Rejects going on with the run in `dir` by other settings or with other data than it was started with.
fn check_same(dir: &Path, config: &RunConfig, fingerprint: &str) -> Result<()> {
    let path = dir.join(CONFIG);
    same::check(&path, &RunConfig::read(&path)?, config)?;
    match Provenance::read(dir)? {
        Some(made) => {
            let hint = "bring it back, or start over with --restart";
            made.check(config, fingerprint, hint)?;
            if made.batches != digest(config)? {
                let text = "sample.batches: the batches differ from those at the start of the run";
                return Err(Error::usage(text).hint(hint));
            }
            Ok(())
        }
        None => Ok(()),
    }
}

/// Uploads the report of a finished run, if `place` is an address in an object store, and removes the folder of this host.
///
/// # Errors
/// If the store cannot be reached.
pub(super) fn keep_report(place: &Path) -> Result<()> {
    if is_uri(place) { objects::add(place, REPORT) } else { Ok(()) }
}
