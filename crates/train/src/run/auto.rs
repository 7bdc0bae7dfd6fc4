//! `train.strategy = "auto"`: the fastest supported strategy, by the rates of `[plan]`.

use gnarl_common::{Context, Error, Result};
use gnarl_config::{RunConfig, Strategy};
use gnarl_planner::RunPlan;

use super::setup::Source;

/// The configuration with the chosen strategy. The choice depends only on inputs that are equal on
/// every rank: the run file, and the dataset, which ranks compare afterwards.
///
/// # Errors
/// If no strategy supports the run, or its task is not predicted.
pub(crate) fn resolve(config: &RunConfig, source: &Source) -> Result<RunConfig> {
    let mut config = config.clone();
    if config.train.strategy != Strategy::Auto {
        return Ok(config);
    }
    let Some(dataset) = source.dataset() else {
        // Where no rank has the whole graph there are no counts to predict from.
        config.train.strategy = Strategy::Gradient;
        tracing::info!(
            "train.strategy = 'auto': gradient, as no rank has the dataset to predict from"
        );
        config.check()?;
        return Ok(config);
    };
    let plan = RunPlan::of_run(&config, dataset).while_doing(|| "train.strategy = 'auto'")?;
    let Some(best) = plan.fastest() else {
        let text = format!("train.strategy = 'auto': {}", plan.verdict());
        return Err(Error::usage(text).hint("gnarl plan RUN.toml shows the cost of each"));
    };
    config.train.strategy = best.strategy;
    tracing::info!("train.strategy = 'auto': {}", plan.verdict());
    Ok(config)
}
