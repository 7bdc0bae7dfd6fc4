//! `gnarl sample`

use std::path::PathBuf;

use clap::Args;
use gnarl_common::Result;
use gnarl_common::staging::Claim;
use gnarl_config::load;
use gnarl_train::Registry;
use serde_json::{Value, json};

use crate::commands::dataset;

/// `gnarl sample`
#[derive(Debug, Args)]
pub struct SampleArgs {
    /// The run file whose batches are prepared
    pub run: PathBuf,
    /// Epochs of batches; a run of more epochs trains on them again, in another order
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub epochs: u32,
    /// Folder to be made: an Arrow file for each epoch and worker
    #[arg(long)]
    pub out: PathBuf,
    /// Replace existing batches
    #[arg(long)]
    pub force: bool,
    /// Override a key of the run file, such as train.workers=4
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

/// Prepares batches.
pub fn run(args: &SampleArgs) -> Result<Value> {
    let _claim = Claim::new(&args.out, "batches.json", args.force)?;
    let mut config = load(&args.run, &args.settings)?;
    dataset::find(&mut config, &args.run)?;
    let made = Registry::default().prepare(&config, args.epochs as usize, &args.out)?;
    Ok(json!({
        "out": args.out,
        "epochs": args.epochs,
        "workers": made.workers,
        "batches": made.batches,
        "examples": made.examples,
        "bytes": made.bytes,
        "seconds": made.seconds,
    }))
}
