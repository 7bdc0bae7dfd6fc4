//! Scores of finished runs, kept on disk: a comparison that was stopped goes on where it was.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use gnarl_graph::{Error, Result, ResultExt};
use gnarl_train::RunConfig;
use serde_json::{Value, json};

use super::{mean, test_scores};

/// A file with a line for every run: what was run, and the test score.
pub struct Kept {
    path: PathBuf,
}

impl Kept {
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The mean test score of `seeds` runs of `config`, of which those are not repeated that this
    /// version has finished before.
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
        let run = key(config)?;
        if let Some(score) = self.find(&run)? {
            return Ok(score);
        }
        let score = mean(&test_scores(config, 1)?);
        let line = json!({ "run": run, "test": score });
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        writeln!(file.at(&self.path)?, "{line}").at(&self.path)?;
        Ok(score)
    }

    /// The score of `run`. Lines that are cut off, as a crash may leave one, are passed over.
    fn find(&self, run: &Value) -> Result<Option<f64>> {
        let text = match std::fs::read_to_string(&self.path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.at(&self.path)?,
        };
        let mut lines = text.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
        Ok(lines.find(|line| line["run"] == *run).and_then(|line| line["test"].as_f64()))
    }
}

/// What decides a score: all settings but where files lie.
fn key(config: &RunConfig) -> Result<Value> {
    let mut config = config.clone();
    config.output = Default::default();
    let name = config.dataset.path.file_name().map(PathBuf::from);
    config.dataset.path = name.unwrap_or_else(|| Path::new("").into());
    let config = serde_json::to_value(config)
        .map_err(|e| Error::invalid(format!("settings of a run: {e}")))?;
    Ok(json!({ "version": env!("CARGO_PKG_VERSION"), "config": config }))
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
        assert_eq!(kept.find(&key(&config).unwrap()).unwrap(), None);
        let line = json!({ "run": key(&config).unwrap(), "test": 0.5 });
        // The second line is what a crash leaves.
        std::fs::write(&kept.path, format!("{line}\n{{\"run\": {{")).unwrap();
        config.dataset.path = "/there/cora".into();
        assert_eq!(kept.find(&key(&config).unwrap()).unwrap(), Some(0.5));
        config.train.lr *= 2.0;
        assert_eq!(kept.find(&key(&config).unwrap()).unwrap(), None);
    }
}
