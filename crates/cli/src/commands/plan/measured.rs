//! The sides of an epoch as a run has measured them.

use std::path::Path;

use gnarl_common::{Error, Result, ResultExt};
use gnarl_config::{Pipeline, load};
use gnarl_planner::Measured;
use gnarl_train::{EpochRecord, run_folder};

/// The stages of the run at `path`: medians over its epochs, without the first one.
///
/// # Errors
/// If it is no run, has fewer than two epochs, or its stages overlapped.
pub fn of_run(path: &Path) -> Result<Measured> {
    let folder = run_folder(path)?;
    let config = load(&folder.join("config.toml"), &[])?;
    let shown = path.display();
    if config.train.pipeline != Pipeline::Off || config.train.workers != 1 {
        let message =
            format!("{shown}: its batches were prepared beside computing, on the same cores");
        return Err(Error::usage(message).hint(
            "measure each side alone: train a few epochs with --set train.pipeline=off, train.workers=1 and no batch workers",
        ));
    }
    let file = folder.join("metrics.jsonl");
    let text = std::fs::read_to_string(&file).at(&file)?;
    let records = text.lines().skip(1).map(|line| {
        serde_json::from_str::<EpochRecord>(line)
            .map_err(|e| Error::invalid(format!("{}: {e}", file.display())))
    });
    let records = records.collect::<Result<Vec<_>>>()?;
    if records.is_empty() {
        return Err(Error::usage(format!("{shown}: no epoch after the first")).hint(
            "train two epochs or more: the first one reads files that later ones find in memory",
        ));
    }
    if records.iter().any(|record| record.batch_workers.is_some()) {
        return Err(Error::usage(format!("{shown}: batch workers prepared its batches"))
            .hint("set disaggregated.batch_workers to 0"));
    }
    let median = |of: &dyn Fn(&EpochRecord) -> f64| {
        let mut all: Vec<f64> = records.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Measured {
        threads: if config.train.threads == 0 { cores } else { config.train.threads },
        compute: median(&|record| record.stages.compute + record.stages.compact),
        prepare: median(&|record| record.stages.sample + record.stages.fetch),
    })
}
