//! A run as its folder records it, finished or not.

use std::path::{Path, PathBuf};

use gnarl_common::{Error, Result, ResultExt};
use gnarl_config::RunConfig;
use gnarl_partition::{PartitionManifest, PartitionedDataset};
use serde::de::DeserializeOwned;

use super::folder::{
    CLASSES, CONFIG, GRAPH, GraphRecord, METRICS, PARTITION, PROFILE, Provenance, RELATIONS,
    SUMMARY,
};
use super::summary::{Finished, Summary};
use crate::evaluation::{ClassScores, Goal, RelationScores};
use crate::telemetry::{EpochRecord, ProfileTotals, Verdict};

/// Metrics that decide where a run file names none, by their keys among scores.
const DECIDING: [&str; 3] = ["accuracy", "mrr", "rmse"];

/// A run as its folder records it: the data of its report, and of comparisons.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The configuration as resolved.
    pub config: RunConfig,
    /// Results and figures. Of a run that is not finished those of the epochs so far; memory and number of weights are
    /// 0, as they are not known yet.
    pub summary: Summary,
    /// True if the run has ended.
    pub finished: bool,
    /// True if its process is known to have ended before the run was finished.
    pub stopped: bool,
    /// Every epoch so far.
    pub history: Vec<EpochRecord>,
    /// The partition, if it is known.
    pub partition: Option<PartitionManifest>,
    /// Test scores of each relation, in link prediction.
    pub relations: Vec<RelationScores>,
    /// Counts of each class, where an example has one.
    pub classes: Option<ClassScores>,
    /// Origin of the run; none of runs of earlier versions.
    pub provenance: Option<Provenance>,
    /// The graph; none of runs of earlier versions.
    pub graph: Option<GraphRecord>,
    /// Sums of its profile, if one was taken.
    pub profile: Option<ProfileTotals>,
    /// The run's folder on this host.
    pub folder: PathBuf,
}

impl Recorded {
    /// A run without epochs.
    pub fn new(config: RunConfig, folder: PathBuf) -> Self {
        let summary = Summary::default();
        Self {
            config,
            summary,
            finished: false,
            stopped: false,
            history: Vec::new(),
            partition: None,
            relations: Vec::new(),
            classes: None,
            provenance: None,
            graph: None,
            profile: None,
            folder,
        }
    }

    /// Reads the folder of a run.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if `dir` is not the folder of a run; if a file there is damaged.
    pub fn read(dir: &Path) -> Result<Self> {
        let config = dir.join(CONFIG);
        if !config.is_file() {
            let place = dir.display();
            return Err(Error::usage(format!("{place} is not a run: it has no {CONFIG}")).hint(
                "name the folder of a run: output.dir of its run file, or run_dir of its result",
            ));
        }
        let mut run = Self::new(RunConfig::read(&config)?, dir.into());
        run.provenance = Provenance::read(dir)?;
        run.partition = partition(&run.config, dir);
        run.graph = unless_damaged(&dir.join(GRAPH));
        run.history = history(&dir.join(METRICS))?;
        run.relations = unless_damaged(&dir.join(RELATIONS)).unwrap_or_default();
        run.classes = unless_damaged(&dir.join(CLASSES));
        run.profile = unless_damaged(&dir.join(PROFILE));
        let ended: Option<Summary> = optional(&dir.join(SUMMARY))?;
        run.finished = ended.is_some();
        run.summary = ended.unwrap_or_else(|| run.so_far());
        Ok(run)
    }

    /// The record of a run of this process that has ended.
    pub fn of(finished: &Finished) -> Self {
        let Finished { config, summary, history, partition, relations, classes, folder } = finished;
        Self {
            summary: summary.clone(),
            finished: true,
            history: history.clone(),
            partition: partition.clone(),
            relations: relations.clone(),
            classes: classes.clone(),
            provenance: Provenance::read(folder).unwrap_or_default(),
            graph: unless_damaged(&folder.join(GRAPH)),
            profile: unless_damaged(&folder.join(PROFILE)),
            ..Self::new(config.clone(), folder.clone())
        }
    }

    /// Adds epochs of a run that lasts.
    pub fn extend(&mut self, records: impl IntoIterator<Item = EpochRecord>) {
        self.history.extend(records);
        self.summary = self.so_far();
    }

    /// The summary of the epochs so far.
    fn so_far(&self) -> Summary {
        let goal = self.goal();
        let score = |record: &EpochRecord| record.valid.get(&goal.metric).copied();
        let evaluated = |record: &&EpochRecord| !record.valid.is_empty() || !record.test.is_empty();
        let mut best: Option<&EpochRecord> = None;
        for record in self.history.iter().filter(evaluated) {
            let better = match (score(record), best.and_then(score)) {
                (Some(new), Some(old)) => goal.improves(new, old),
                _ => true,
            };
            if better {
                best = Some(record);
            }
        }
        Summary {
            valid: best.map(|record| record.valid.clone()).unwrap_or_default(),
            test: best.map(|record| record.test.clone()).unwrap_or_default(),
            best_epoch: best.map_or(0, |record| record.epoch),
            metric: goal.metric,
            workers: self.config.train.workers,
            parts: self.partition.as_ref().map_or(1, |made| made.parts),
            run_dir: self.folder.clone(),
            ..Summary::of_history(&self.history)
        }
    }

    /// The score that selects weights, as the run has recorded it; of runs of earlier versions a guess.
    fn goal(&self) -> Goal {
        let recorded = self.graph.as_ref().and_then(|graph| graph.goal.clone());
        recorded.unwrap_or_else(|| {
            let metric = deciding(&self.config, &self.history);
            Goal { smaller_is_better: gnarl_nn::metrics::smaller_is_better(&metric), metric }
        })
    }

    /// The bottleneck of the run, and advice.
    pub fn verdict(&self) -> Verdict {
        Verdict::of_run(&self.history, &self.config.train)
    }
}

/// The epochs of `metrics.jsonl`; none if it was not begun. A last line without an end is still being written.
fn history(path: &Path) -> Result<Vec<EpochRecord>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path).at(path)?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let record = |(number, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|e| Error::invalid(format!("{}: line {}: {e}", path.display(), number + 1)))
    };
    text[..whole].lines().enumerate().map(record).collect()
}

/// A file of JSON, if it exists.
fn optional<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).at(path)?;
    let parsed = serde_json::from_str(&text);
    parsed.map(Some).map_err(|e| Error::invalid(format!("{}: {e}", path.display())))
}

/// A file of JSON that a run can be shown without, if it exists; one that is damaged is left out, with a warning.
fn unless_damaged<T: DeserializeOwned>(path: &Path) -> Option<T> {
    optional(path).unwrap_or_else(|e| {
        tracing::warn!("left out, as it is damaged: {e}");
        None
    })
}

/// The manifest of the partition that the run made, or was given; none if it is elsewhere.
fn partition(config: &RunConfig, dir: &Path) -> Option<PartitionManifest> {
    let made = dir.join(PARTITION);
    let place = if made.exists() { Some(made) } else { config.partition.path.clone() };
    let opened = PartitionedDataset::open(place?).ok()?;
    Some(opened.manifest().clone())
}

/// The metric that most likely selects weights, by its key among scores.
fn deciding(config: &RunConfig, history: &[EpochRecord]) -> String {
    if let Some(metric) = &config.train.metric {
        return metric.replace('-', "_");
    }
    let found = history.iter().flat_map(|record| record.valid.keys().chain(record.test.keys()));
    let found: std::collections::BTreeSet<&String> = found.collect();
    let known = DECIDING.iter().find(|name| found.iter().any(|found| found == *name));
    known
        .map(|name| name.to_string())
        .or_else(|| found.first().map(|name| name.to_string()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::Scores;

    fn record(epoch: usize, valid: Option<f64>) -> EpochRecord {
        let valid = valid.map_or_else(Scores::new, |score| [("accuracy".into(), score)].into());
        EpochRecord { epoch, loss: 1.0 / epoch as f64, valid, ..Default::default() }
    }

    #[test]
    fn a_run_that_lasts_has_its_best_epoch_so_far() {
        let dir = tempfile::tempdir().unwrap();
        let text = RunConfig::default().to_toml().unwrap();
        std::fs::write(dir.path().join(CONFIG), text).unwrap();
        assert!(Recorded::read(dir.path()).unwrap().history.is_empty());
        let records =
            [record(1, Some(0.5)), record(2, Some(0.75)), record(3, None), record(4, Some(0.75))];
        let lines: String = records.iter().map(|record| record.line() + "\n").collect();
        // The fifth line is being written.
        std::fs::write(dir.path().join(METRICS), lines + "{\"epo").unwrap();
        let run = Recorded::read(dir.path()).unwrap();
        assert_eq!((run.finished, run.history.len()), (false, 4));
        let Summary { metric, best_epoch, valid, .. } = &run.summary;
        assert_eq!((metric.as_str(), *best_epoch, valid["accuracy"]), ("accuracy", 2, 0.75));
    }

    #[test]
    fn the_recorded_goal_decides_and_damaged_records_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| std::fs::write(dir.path().join(name), text).unwrap();
        write(CONFIG, RunConfig::default().to_toml().unwrap());
        let record = |epoch, [auc, regret]: [f64; 2]| {
            let valid = Scores::from([("roc_auc".into(), auc), ("regret".into(), regret)]);
            EpochRecord { epoch, valid, ..Default::default() }.line() + "\n"
        };
        write(METRICS, record(1, [0.5, 3.0]) + &record(2, [0.9, 4.0]) + &record(3, [0.7, 2.0]));
        let best = || {
            let Summary { metric, best_epoch, .. } = Recorded::read(dir.path()).unwrap().summary;
            (metric, best_epoch)
        };
        let goal = Goal { metric: "regret".into(), smaller_is_better: true };
        let graph = GraphRecord { goal: Some(goal), ..GraphRecord::default() };
        graph.write(dir.path()).unwrap();
        assert_eq!(best(), ("regret".into(), 3));
        let known = Goal { metric: "roc_auc".into(), smaller_is_better: false };
        GraphRecord { goal: Some(known), ..graph }.write(dir.path()).unwrap();
        assert_eq!(best(), ("roc_auc".into(), 2));
        for name in [GRAPH, CLASSES, RELATIONS] {
            write(name, "{\"split\": 3".into());
        }
        let run = Recorded::read(dir.path()).unwrap();
        assert_eq!((run.graph, run.classes, run.relations.len()), (None, None, 0));
    }

    #[test]
    fn other_folders_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = Recorded::read(dir.path()).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let text = error.to_string();
        assert!(
            text.contains(&dir.path().display().to_string()) && text.contains("hint: "),
            "{text}"
        );
    }
}
