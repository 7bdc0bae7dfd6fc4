//! Results of a run.

use std::path::PathBuf;

use gnarl_config::RunConfig;
use gnarl_partition::PartitionManifest;
use serde::{Deserialize, Serialize};

use crate::evaluation::{RelationScores, Scores};
use crate::json;
use crate::telemetry::{EpochRecord, Verdict};

/// What a run found; the last line of `gnarl train`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The score that decided which weights are best.
    pub metric: String,
    /// Test scores of the weights that were best in validation.
    #[serde(deserialize_with = "json::floats")]
    pub test: Scores,
    /// Their validation scores.
    #[serde(deserialize_with = "json::floats")]
    pub valid: Scores,
    /// The epoch they are from.
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
    /// Number of weights, learnt rows included.
    pub parameters: usize,
    /// Ranks.
    pub workers: usize,
    /// Parts; 1 if the graph was not cut.
    pub parts: usize,
    /// The run's folder.
    pub run_dir: PathBuf,
}

/// A finished run: its summary, and what its report is drawn from.
pub struct Finished {
    /// The configuration as resolved.
    pub config: RunConfig,
    /// Results and figures.
    pub summary: Summary,
    /// Every epoch.
    pub history: Vec<EpochRecord>,
    /// The partition, if the graph was cut.
    pub partition: Option<PartitionManifest>,
    /// Test scores of each relation, in link prediction.
    pub relations: Vec<RelationScores>,
}

impl Finished {
    /// What the run was bound by, and what would make it faster.
    pub fn verdict(&self) -> Verdict {
        Verdict::of_run(&self.history, &self.config.train)
    }
}
