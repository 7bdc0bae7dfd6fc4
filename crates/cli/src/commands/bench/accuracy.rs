//! Mean test scores over seeds.

use std::path::PathBuf;

use gnarl_graph::Result;
use gnarl_train::config::load;
use serde_json::{Value, json};

use super::{deviation, mean, test_scores};
use crate::commands::dataset::prepare;

pub fn run(runs: &[PathBuf], seeds: u64, settings: &[String]) -> Result<Value> {
    let mut rows = Vec::new();
    for path in runs {
        let mut config = load(path, settings)?;
        config.output.dir.push("seeds");
        prepare(&mut config, path)?;
        let scores = test_scores(&config, seeds)?;
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
