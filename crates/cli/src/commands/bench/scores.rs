//! Test scores over seeds.

use gnarl_common::Result;
use gnarl_config::RunConfig;
use gnarl_train::Summary;

/// Test scores of `seeds` runs that differ only in `train.seed`.
pub fn test_scores(config: &RunConfig, seeds: u64) -> Result<Vec<f64>> {
    let mut scores = Vec::new();
    let mut config = config.clone();
    if std::mem::take(&mut config.output.profile) {
        tracing::warn!("output.profile is not used: each run takes the place of the one before");
    }
    for seed in 0..seeds {
        let mut config = config.clone();
        config.train.seed += seed;
        let finished = gnarl_train::run(&config, gnarl_train::Begin::Restart, &|_| {})?;
        scores.push(test_score(&finished.summary));
    }
    Ok(scores)
}

fn test_score(summary: &Summary) -> f64 {
    summary.test.get(&summary.metric).copied().unwrap_or(0.0)
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Standard deviation of a sample.
pub fn deviation(values: &[f64]) -> f64 {
    let m = mean(values);
    let squares: f64 = values.iter().map(|v| (v - m).powi(2)).sum();
    (squares / values.len().saturating_sub(1).max(1) as f64).sqrt()
}
