//! Requests of `gnarl infer` to a trained run.

use std::path::Path;
use std::time::Instant;

use gnarl_common::{Error, Result};
use gnarl_train::{Infer, OpenOptions, Registry, TrainedRun};
use serde_json::Value;

use super::args::InferArgs;
use super::{edges, nodes, ranked};
use crate::commands::objects;

/// Opens the trained run.
pub(super) fn open(args: &InferArgs) -> Result<TrainedRun> {
    let folder = args.report.as_deref().and_then(Path::parent);
    if let Some(folder) = folder.filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
    {
        return Err(Error::usage(format!("--report: {} is no folder", folder.display())));
    }
    let dataset = args.dataset.as_deref().map(objects::local).transpose()?;
    let options = OpenOptions {
        dataset,
        memory: args.memory_of_pass(),
        fanouts: args.fanouts.clone(),
        order: args.order.unwrap_or_default(),
        cache: args.cache(),
        sweeps: args.sweep.unwrap_or_default(),
        partition: args.partition.clone(),
        layers: args.layers.clone(),
        unlabeled: true,
    };
    TrainedRun::open(&Registry::default(), &args.run_dir, &options)
}

/// Writes what is asked for of `run`, whose outputs `by` computes.
pub(super) fn predict(
    args: &InferArgs,
    (run, by): (&TrainedRun, &dyn Infer),
    start: Instant,
) -> Result<Value> {
    let dataset = run.catalog()?;
    let found = match (args.top_k, &args.edges) {
        (Some(k), _) => ranked::run(args, (run, by, dataset), k.get(), start)?,
        (None, Some(which)) => edges::run(args, (run, by, dataset), which, start)?,
        (None, None) => nodes::run(args, (run, by, dataset), start)?,
    };
    run.forget_layers()?;
    Ok(found)
}
