//! `gnarl eval`

use std::path::PathBuf;

use clap::Args;
use gnarl_common::Result;
use gnarl_config::RunConfig;
use gnarl_train::{eval_run, run_folder};
use serde_json::{Value, json};

use super::objects;
use crate::allocator::{AMPLE, hold_little};

/// `gnarl eval`
#[derive(Debug, Args)]
pub struct EvalArgs {
    /// The run's folder, or its address in an object store
    pub run_dir: PathBuf,
    /// Evaluate on this dataset instead of the run's: its directory, or its address in an object store
    #[arg(long)]
    pub dataset: Option<PathBuf>,
}

pub fn run(args: &EvalArgs) -> Result<Value> {
    // Before the first thread, and so before a run in an object store can be asked.
    let budget = RunConfig::read(&args.run_dir.join("config.toml")).ok();
    let budget = budget.and_then(|config| config.tensor.memory);
    hold_little(budget.is_none_or(|budget| budget.as_u64() >= AMPLE));
    let dataset = args.dataset.as_deref().map(objects::local).transpose()?;
    let run = run_folder(&args.run_dir)?;
    let evaluation = eval_run(&run, dataset.as_deref())?;
    let mut found = json!({
        "test": evaluation.test,
        "valid": evaluation.valid,
        "run_dir": args.run_dir,
        "finished": run.join("summary.json").exists(),
        "peak_rss_bytes": gnarl_common::memory::peak_rss(),
    });
    if !evaluation.train.is_empty() {
        found["train"] = json!(evaluation.train);
    }
    if let Some(leakage) = evaluation.leakage {
        match leakage.train.seen + leakage.valid.seen + leakage.test.seen {
            0 => tracing::info!("{}", leakage.verdict),
            _ => tracing::warn!("{}", leakage.verdict),
        }
        found["leakage"] = json!(leakage);
    }
    Ok(found)
}
