//! The sides of an epoch as a run has measured them.

use std::path::Path;

use gnarl_common::{Error, Result, ResultExt};
use gnarl_config::{Pipeline, RunConfig, Strategy, absolute, load};
use gnarl_planner::Measured;
use gnarl_train::{EpochRecord, record_folder};

/// The stages of the run at `path`: medians over its epochs, without the first one.
///
/// # Errors
/// If it is no run, has other batches than those of `planned`, fewer than two epochs, or stages that overlapped.
pub fn of_run(path: &Path, planned: &RunConfig) -> Result<Measured> {
    let folder = record_folder(path)?;
    let config = load(&folder.join("config.toml"), &[])?;
    let shown = path.display();
    if planned.train.strategy != Strategy::Disaggregated {
        return Err(Error::usage("--from is for runs of strategy 'disaggregated'")
            .hint("set train.strategy to 'disaggregated'"));
    }
    if let Some(section) = differs(&config, planned) {
        return Err(Error::usage(format!("{shown}: {section} is not that of the run file"))
            .hint("measure a run of the same dataset, parts, model and batches"));
    }
    if config.train.workers != 1 {
        let message = format!("{shown}: trained by {} workers", config.train.workers);
        return Err(Error::usage(message).hint("set train.workers to 1 to measure"));
    }
    if config.train.pipeline != Pipeline::Off {
        let message = format!("{shown}: batches were prepared beside computing, on the same cores");
        return Err(Error::usage(message)
            .hint("measure each alone: train some epochs with --set train.pipeline=off"));
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

/// The first section in which two runs differ so that their batches or their models do.
fn differs(measured: &RunConfig, planned: &RunConfig) -> Option<&'static str> {
    let [measured, planned] = [measured, planned].map(absolute);
    let same = [
        ("[train] strategy", measured.train.strategy == planned.train.strategy),
        ("[dataset]", measured.dataset == planned.dataset),
        ("[task]", measured.task == planned.task),
        ("[model]", measured.model == planned.model),
        ("[sample]", measured.sample == planned.sample),
        ("[partition]", measured.partition == planned.partition),
        (
            "[disaggregated]",
            measured.disaggregated.of_batches() == planned.disaggregated.of_batches(),
        ),
    ];
    same.into_iter().find(|(_, same)| !same).map(|(section, _)| section)
}
