//! The folder of a run: what is in it, and what may be done with one that exists.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gnarl_graph::{Error, Result, ResultExt};
use serde::Serialize;

use crate::checkpoint::{CHECKPOINT, atomic_write};
use crate::config::RunConfig;
use crate::history::EpochRecord;

/// The resolved configuration.
pub const CONFIG: &str = "config.toml";
/// One JSON object for each epoch.
pub const METRICS: &str = "metrics.jsonl";
/// The best weights.
pub const MODEL: &str = "model.safetensors";
/// Results and figures.
pub const SUMMARY: &str = "summary.json";
/// Test scores of each relation, in link prediction.
pub const RELATIONS: &str = "relations.json";
/// Curves and pictures.
pub const REPORT: &str = "report.html";
/// The partition made for the run.
pub const PARTITION: &str = "partition";

/// How to begin in a folder that has a run already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Replace a finished run, refuse to touch an unfinished one.
    Fresh,
    /// Go on from the checkpoint.
    Resume,
    /// Start over whatever is there.
    Restart,
}

/// A run's folder.
#[derive(Debug)]
pub struct RunFolder {
    dir: PathBuf,
    metrics: Mutex<Option<File>>,
}

impl RunFolder {
    /// Prepares the folder for `config`; `true` if there is a checkpoint to go on from.
    ///
    /// # Errors
    /// If the folder cannot be written, holds an unfinished run, or a different run is to be
    /// resumed.
    pub fn open(config: &RunConfig, begin: Begin) -> Result<(Self, bool)> {
        let dir = config.output.dir.clone();
        std::fs::create_dir_all(&dir).at(&dir)?;
        let has = |name: &str| dir.join(name).exists();
        let resume = begin == Begin::Resume && has(CHECKPOINT);
        if begin == Begin::Fresh && has(CHECKPOINT) && !has(SUMMARY) {
            return Err(Error::usage(format!("{}: holds an unfinished run", dir.display()))
                .hint("go on with --resume, start over with --restart, or set output.dir"));
        }
        if resume {
            same_run(&dir.join(CONFIG), config)?;
        } else {
            for name in [CHECKPOINT, METRICS, MODEL, SUMMARY, RELATIONS, REPORT] {
                let path = dir.join(name);
                if path.exists() {
                    std::fs::remove_file(&path).at(&path)?;
                }
            }
        }
        tidy(&dir)?;
        let text = toml::to_string_pretty(config)
            .map_err(|e| Error::invalid(format!("the configuration cannot be written: {e}")))?;
        atomic_write(&dir.join(CONFIG), text.as_bytes())?;
        Ok((Self { dir, metrics: Mutex::new(None) }, resume))
    }

    /// The folder that another rank prepares.
    pub fn join(config: &RunConfig) -> Self {
        Self { dir: config.output.dir.clone(), metrics: Mutex::new(None) }
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The first `epochs` epochs of a run to go on with.
    ///
    /// # Errors
    /// If one is missing, or its line is damaged.
    pub fn history(&self, epochs: usize) -> Result<Vec<EpochRecord>> {
        let path = self.dir.join(METRICS);
        let text =
            if epochs > 0 { std::fs::read_to_string(&path).at(&path)? } else { String::new() };
        let mut lines = text.lines();
        let record = |epoch: usize| {
            let record = lines.next().and_then(|line| serde_json::from_str(line).ok());
            record.filter(|record: &EpochRecord| record.epoch == epoch).ok_or_else(|| {
                let place = format!("{}: line {epoch}", path.display());
                Error::invalid(format!("{place}: not epoch {epoch}, which the checkpoint knows of"))
                    .hint("the run can be started over with --restart")
            })
        };
        (1..=epochs).map(record).collect()
    }

    /// Starts `metrics.jsonl` over with the epochs already known: after a crash it may hold lines
    /// of epochs that are trained again.
    pub fn start_metrics(&self, history: &[EpochRecord]) -> Result<()> {
        let path = self.dir.join(METRICS);
        let lines: String = history.iter().map(|record| line(record) + "\n").collect();
        atomic_write(&path, lines.as_bytes())?;
        let file = File::options().append(true).open(&path).at(&path)?;
        *self.metrics.lock().unwrap_or_else(|e| e.into_inner()) = Some(file);
        Ok(())
    }

    /// Returns when all epochs appended are on disk.
    pub fn sync_metrics(&self) -> Result<()> {
        let path = self.dir.join(METRICS);
        match self.metrics.lock().unwrap_or_else(|e| e.into_inner()).as_ref() {
            Some(file) => file.sync_data().at(&path),
            None => Ok(()),
        }
    }

    /// Appends an epoch to `metrics.jsonl`.
    pub fn append(&self, record: &EpochRecord) -> Result<()> {
        let path = self.dir.join(METRICS);
        match self.metrics.lock().unwrap_or_else(|e| e.into_inner()).as_mut() {
            Some(file) => writeln!(file, "{}", line(record)).at(&path),
            None => Ok(()),
        }
    }
}

/// Removes what a killed run was about to write.
fn tidy(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir).at(dir)? {
        let path = entry.at(dir)?.path();
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if !extension.starts_with("tmp-") {
            continue;
        }
        match path.is_dir() {
            true => std::fs::remove_dir_all(&path).at(&path)?,
            false => std::fs::remove_file(&path).at(&path)?,
        }
    }
    Ok(())
}

/// A line of `metrics.jsonl`.
fn line(record: &EpochRecord) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(flatten)]
        record: &'a EpochRecord,
        verdict: String,
    }
    let verdict = record.verdict().to_string();
    serde_json::to_string(&Line { record, verdict }).unwrap_or_default()
}

/// Refuses to resume a run with other settings than it was started with; those that cannot change
/// its numbers may differ.
fn same_run(path: &Path, config: &RunConfig) -> Result<()> {
    let text = std::fs::read_to_string(path).at(path)?;
    let old: RunConfig =
        toml::from_str(&text).map_err(|e| Error::invalid(format!("{}: {e}", path.display())))?;
    let harmless = |config: &RunConfig| {
        let mut c = config.clone();
        c.train.threads = 0;
        c.train.prefetch = 1;
        c.train.checkpoint_seconds = 0.0;
        c.train.deadline_seconds = 1.0;
        c.train.engine = Default::default();
        c.output = Default::default();
        c.plan = Default::default();
        toml::Value::try_from(c).ok()
    };
    match (harmless(&old), harmless(config)) {
        (Some(old), Some(new)) => match first_difference(&old, &new, String::new()) {
            None => Ok(()),
            Some(key) => Err(Error::usage(format!("{key} differs from the run to be resumed"))
                .hint(format!("{} has the settings it was started with", path.display()))),
        },
        _ => Err(Error::invalid(format!("{}: not a run configuration", path.display()))),
    }
}

fn first_difference(old: &toml::Value, new: &toml::Value, path: String) -> Option<String> {
    let (toml::Value::Table(a), toml::Value::Table(b)) = (old, new) else {
        return (old != new).then_some(path);
    };
    let join = |key: &str| if path.is_empty() { key.into() } else { format!("{path}.{key}") };
    let changed = a.iter().find_map(|(key, value)| match b.get(key) {
        Some(other) => first_difference(value, other, join(key)),
        None => Some(join(key)),
    });
    changed.or_else(|| b.keys().find(|key| !a.contains_key(*key)).map(|key| join(key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Stages;

    #[test]
    fn history_is_read_back_up_to_the_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder { dir: dir.path().into(), metrics: Mutex::new(None) };
        let record = |epoch| EpochRecord { epoch, loss: 0.1 * epoch as f64, ..Default::default() };
        folder.start_metrics(&[record(1)]).unwrap();
        (2..=4).for_each(|epoch| folder.append(&record(epoch)).unwrap());
        folder.sync_metrics().unwrap();
        // Killed while it wrote the fifth line.
        let path = dir.path().join(METRICS);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{{\"epo")).unwrap();
        assert_eq!(folder.history(3).unwrap(), [record(1), record(2), record(3)]);
        assert_eq!(folder.history(4).unwrap().len(), 4);
        let error = folder.history(5).unwrap_err().to_string();
        assert!(error.contains("line 5: not epoch 5"), "{error}");
    }

    #[test]
    fn a_line_is_the_record_with_its_verdict() {
        let stages = Stages { compute: 0.9, ..Stages::default() };
        let record = EpochRecord { epoch: 3, seconds: 1.0, stages, ..EpochRecord::default() };
        let line = line(&record);
        assert_eq!(serde_json::from_str::<EpochRecord>(&line).unwrap(), record);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["verdict"], record.verdict().to_string());
    }
}
