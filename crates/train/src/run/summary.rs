//! Results of a run.

use std::path::PathBuf;

use gnarl_common::Result;
use gnarl_config::RunConfig;
use gnarl_partition::PartitionManifest;
use serde::{Deserialize, Serialize};

use crate::evaluation::{ClassScores, RelationScores, Scores};
use crate::json;
use crate::run::folder;
use crate::telemetry::{EpochRecord, Verdict};

/// The summary of a run, printed as the last line of `gnarl train`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The metric that selected the best weights.
    pub metric: String,
    /// Test scores of the best weights in validation.
    #[serde(deserialize_with = "json::floats")]
    pub test: Scores,
    /// Validation scores of these weights.
    #[serde(deserialize_with = "json::floats")]
    pub valid: Scores,
    /// Epoch of these weights.
    pub best_epoch: usize,
    /// Epochs trained.
    pub epochs: usize,
    /// Median wall seconds of an epoch, evaluation not included.
    pub epoch_seconds: f64,
    /// Edges sampled a second of training, over all workers.
    pub sampled_edges_per_second: f64,
    /// Mean training loss of each epoch.
    #[serde(deserialize_with = "json::list")]
    pub losses: Vec<f64>,
    /// Largest resident memory of the process, in bytes.
    pub peak_rss_bytes: u64,
    /// Number of weights, embeddings included.
    pub parameters: usize,
    /// Number of ranks.
    pub workers: usize,
    /// Number of parts; 1 if the graph was not partitioned.
    pub parts: usize,
    /// The run's folder: its path, or its address in an object store.
    pub run_dir: PathBuf,
}

impl Summary {
    /// The figures of some epochs, without scores.
    pub(crate) fn of_history(history: &[EpochRecord]) -> Self {
        Self {
            epochs: history.len(),
            epoch_seconds: median(history.iter().map(|r| r.seconds).collect()),
            sampled_edges_per_second: per_second(history),
            losses: history.iter().map(|r| r.loss).collect(),
            ..Self::default()
        }
    }
}

fn per_second(history: &[EpochRecord]) -> f64 {
    let seconds: f64 = history.iter().map(|r| r.seconds).sum();
    let edges: u64 = history.iter().map(|r| r.sampled_edges).sum();
    if seconds > 0.0 { edges as f64 / seconds } else { 0.0 }
}

/// The median, the lower of two; 0 if empty.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

/// A finished run: its summary, and the data of its report.
pub struct Finished {
    /// The configuration as resolved.
    pub config: RunConfig,
    /// Results and figures.
    pub summary: Summary,
    /// Every epoch.
    pub history: Vec<EpochRecord>,
    /// The partition, if the graph was partitioned.
    pub partition: Option<PartitionManifest>,
    /// Test scores of each relation, in link prediction.
    pub relations: Vec<RelationScores>,
    /// Counts of each class, where an example has one.
    pub classes: Option<ClassScores>,
    /// The run's folder on this host.
    pub folder: PathBuf,
}

impl Finished {
    /// The bottleneck of the run, and advice.
    pub fn verdict(&self) -> Verdict {
        Verdict::of_run(&self.history, &self.config.train)
    }

    /// Brings the report, which is in the folder, to where the run is kept. The folder of this host is removed if that
    /// is an object store.
    ///
    /// # Errors
    /// If it cannot be uploaded.
    pub fn keep_report(&self) -> Result<()> {
        folder::keep_report(&self.summary.run_dir)
    }
}
