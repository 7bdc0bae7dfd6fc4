//! `gnarl repeat`, formerly `gnarl bench accuracy`: mean test scores over seeds.

use std::path::PathBuf;

use clap::Args;
use gnarl_common::Result;
use gnarl_config::load;
use serde_json::{Value, json};

use super::scores::{deviation, mean, test_scores};
use crate::commands::dataset::prepare;

/// `gnarl repeat`
#[derive(Debug, Args)]
pub struct RepeatArgs {
    /// Run files
    #[arg(required = true)]
    pub runs: Vec<PathBuf>,
    /// Number of seeds, from train.seed on
    #[arg(long, default_value_t = 10)]
    pub seeds: u64,
    /// Override a key of every run file
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

pub fn run(args: &RepeatArgs) -> Result<Value> {
    let RepeatArgs { runs, seeds, settings } = args;
    let mut rows = Vec::new();
    for path in runs {
        let mut config = load(path, settings)?;
        config.output.dir.push("seeds");
        prepare(&mut config, path)?;
        let scores = test_scores(&config, *seeds)?;
        tracing::info!(
            "{}: {:.4} ± {:.4} over {seeds} seeds",
            path.display(),
            mean(&scores),
            deviation(&scores)
        );
        rows.push(json!({
            "run": path,
            "mean": mean(&scores),
            "deviation": deviation(&scores),
            "scores": scores,
        }));
    }
    Ok(json!({ "runs": rows, "seeds": seeds }))
}
