//! `train.strategy = "auto"`: the fastest strategy that trains the run, by the rates of `[plan]`.

use gnarl_common::{Context, Error, Result};
use gnarl_config::{RunConfig, Strategy};
use gnarl_planner::RunPlan;

use super::setup::Source;

/// The configuration with the strategy that trains it. What it depends on is the same on every rank:
/// the run file, and the dataset, which ranks compare afterwards.
///
/// # Errors
/// If no strategy can train the run, or the task is not one that is predicted.
pub(crate) fn resolve(config: &RunConfig, source: &Source) -> Result<RunConfig> {
    let mut config = config.clone();
    if config.train.strategy != Strategy::Auto {
        return Ok(config);
    }
    let Some(dataset) = source.dataset() else {
        // Where no rank has the whole graph one strategy is left.
        config.train.strategy = Strategy::Gradient;
        tracing::info!("train.strategy = 'auto': gradient, which alone trains on servers' parts");
        config.check()?;
        return Ok(config);
    };
    let plan = RunPlan::of_run(&config, dataset).while_doing(|| "train.strategy = 'auto'")?;
    let Some(best) = plan.fastest() else {
        let text = format!("train.strategy = 'auto': {}", plan.verdict());
        return Err(Error::usage(text).hint("gnarl plan RUN.toml says what each would take"));
    };
    config.train.strategy = best.strategy;
    tracing::info!("train.strategy = 'auto': {}", plan.verdict());
    Ok(config)
}
