//! The end of a run: its best weights, its results and figures.

use gnarl_common::Result;
use gnarl_common::memory::peak_rss;
use gnarl_config::RunConfig;
use gnarl_partition::PartitionManifest;

use super::folder::RunFolder;
use super::summary::{Finished, Summary};
use crate::run::checkpoint::atomic_write;
use crate::run::folder::{CLASSES, METRICS, PROFILE, RELATIONS, SUMMARY, TRACE};
use crate::state::Progress;
use crate::telemetry::profile::Taken;

/// Writes the results of a run to its folder, and then its profile, if it has taken one.
///
/// # Errors
/// If the disk is full, or the results cannot be uploaded.
pub(super) fn finish(
    config: &RunConfig,
    folder: &RunFolder,
    partition: Option<PartitionManifest>,
    (metric, parameters): (String, usize),
    (progress, taken): (Progress, Option<Taken>),
) -> Result<Finished> {
    let history = progress.history;
    let summary = Summary {
        metric,
        test: progress.best_test,
        valid: progress.best_valid,
        best_epoch: progress.best_epoch,
        peak_rss_bytes: peak_rss(),
        parameters,
        workers: config.train.workers,
        parts: partition.as_ref().map_or(1, |p| p.parts),
        run_dir: folder.place().into(),
        ..Summary::of_history(&history)
    };
    let relations = progress.best_relations;
    if !relations.is_empty() {
        let text = serde_json::to_string_pretty(&relations).unwrap_or_default();
        atomic_write(&folder.dir().join(RELATIONS), text.as_bytes())?;
    }
    let classes = progress.best_classes;
    if let Some(classes) = &classes {
        let text = serde_json::to_string(classes).unwrap_or_default();
        atomic_write(&folder.dir().join(CLASSES), text.as_bytes())?;
    }
    let text = serde_json::to_string_pretty(&summary).unwrap_or_default();
    atomic_write(&folder.dir().join(SUMMARY), text.as_bytes())?;
    if let Some(taken) = taken {
        taken.write(config, folder);
    }
    folder.changed(&[METRICS, RELATIONS, CLASSES, TRACE, PROFILE, SUMMARY])?;
    folder.finish_uploads()?;
    let (config, folder) = (config.clone(), folder.dir().into());
    Ok(Finished { config, summary, history, partition, relations, classes, folder })
}
