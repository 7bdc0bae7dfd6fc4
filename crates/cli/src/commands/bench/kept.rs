//! Scores of finished runs, saved on disk, so that an interrupted comparison can continue.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use gnarl_common::{Error, Result, ResultExt};
use gnarl_config::RunConfig;
use serde_json::json;

use super::scores::{mean, test_scores};

/// A file with one line per run: its settings, and the test score.
pub struct Kept {
    path: PathBuf,
}

impl Kept {
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The mean test score of `seeds` runs of `config`; runs that this version has finished before
    /// are not repeated.
    pub fn mean_score(&self, config: &RunConfig, seeds: u64) -> Result<f64> {
        let mut scores = Vec::new();
        for seed in 0..seeds {
            let mut config = config.clone();
            config.train.seed += seed;
            scores.push(self.score(&config)?);
        }
        Ok(mean(&scores))
    }

    fn score(&self, config: &RunConfig) -> Result<f64> {
        let opening = opening(config)?;
        if let Some(score) = self.find(&opening)? {
            return Ok(score);
        }
        let score = mean(&test_scores(config, 1)?);
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        writeln!(file.at(&self.path)?, "{opening}{score}}}").at(&self.path)?;
        Ok(score)
    }

    /// The score in the line that begins with `opening`. Incomplete lines, as after a crash, are
    /// skipped.
    fn find(&self, opening: &str) -> Result<Option<f64>> {
        let text = match std::fs::read_to_string(&self.path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.at(&self.path)?,
        };
        let score = |line: &str| line.strip_prefix(opening)?.strip_suffix('}')?.parse().ok();
        Ok(text.lines().find_map(score))
    }
}

/// A run's line up to its score: all settings that decide it, so without file locations. Lines are
/// compared as text, since parsing a number may change its last digit.
fn opening(config: &RunConfig) -> Result<String> {
    let mut config = config.clone();
    config.output = Default::default();
    let name = config.dataset.path.file_name().map(PathBuf::from);
    config.dataset.path = name.unwrap_or_default();
    let config = serde_json::to_value(config)
        .map_err(|e| Error::invalid(format!("settings of a run: {e}")))?;
    let run = json!({ "version": env!("CARGO_PKG_VERSION"), "config": config });
    Ok(format!("{{\"run\":{run},\"test\":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_runs_are_found_by_their_settings_wherever_files_lie() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::new(dir.path().join("runs.jsonl"));
        let mut config = RunConfig::default();
        config.dataset.path = "/here/cora".into();
        let find = |config: &RunConfig| kept.find(&opening(config).unwrap()).unwrap();
        assert_eq!(find(&config), None);
        // The second line is incomplete, as after a crash.
        let line = format!("{}0.5}}", opening(&config).unwrap());
        std::fs::write(&kept.path, format!("{line}\n{}", &line[..line.len() - 1])).unwrap();
        config.dataset.path = "/there/cora".into();
        assert_eq!(find(&config), Some(0.5));
        config.train.lr *= 2.0;
        assert_eq!(find(&config), None);
        std::fs::write(&kept.path, &line[..line.len() - 1]).unwrap();
        config.train.lr /= 2.0;
        assert_eq!(find(&config), None);
    }
}
