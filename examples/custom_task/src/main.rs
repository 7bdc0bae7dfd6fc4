//! A task of one's own, node ranking, trained by gnarl's loop: two workers, checkpoints, a report.
//! `cargo run --release -p example-custom-task -- FOLDER` trains in a folder, and goes on there if it was stopped.

mod ranking;

use std::path::{Path, PathBuf};

use gnarl::config::{Parts, RunConfig, TaskKind};
use gnarl::graph::generate::{Attributes, CommunityOptions, community};
use gnarl::report::write_run_report;
use gnarl::train::{Begin, Finished, Objective, Recorded, Registry};
use gnarl::{Error, Result};

use ranking::Ranking;

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().map_or_else(|| PathBuf::from("runs/custom-task"), PathBuf::from);
    let epochs = words.next().and_then(|epochs| epochs.parse().ok()).unwrap_or(20);
    let finished = example(&folder, epochs)?;
    let losses = &finished.summary.losses;
    println!(
        "loss of the first epoch {:.3}, of the last {:.3}",
        losses[0],
        losses[losses.len() - 1]
    );
    println!("rank correlation of test nodes {:.3}", finished.summary.test["spearman"]);
    println!("report in {}", finished.summary.run_dir.display());
    Ok(())
}

/// The library's models and tasks, and this one.
fn registry() -> Result<Registry> {
    let mut registry = Registry::default();
    registry.add_task("node-ranking", |_, labels| {
        Ok(Box::new(Ranking::new(labels)?) as Box<dyn Objective>)
    })?;
    Ok(registry)
}

/// Trains on a graph made in `folder`, from the checkpoint there if there is one.
fn example(folder: &Path, epochs: usize) -> Result<Finished> {
    let graph = folder.join("graph");
    if !graph.exists() {
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        community(&options(), &graph)?;
    }
    let config = config(folder, epochs);
    let begin = match config.output.dir.join("checkpoint.safetensors").exists() {
        true => Begin::Resume,
        false => Begin::Fresh,
    };
    let finished = registry()?.run(&config, begin, &|_| {})?;
    write_run_report(&finished.summary.run_dir, &Recorded::of(&finished))?;
    Ok(finished)
}

/// Communities that features alone tell apart badly.
fn options() -> CommunityOptions {
    let attributes = Attributes {
        features: 16,
        classes: 8,
        train: 0.3,
        valid: 0.2,
        test: 0.5,
        ..Attributes::default()
    };
    CommunityOptions {
        nodes: 2000,
        communities: 8,
        average_degree: 12.0,
        attributes,
        ..CommunityOptions::default()
    }
}

/// What a run file would say.
fn config(folder: &Path, epochs: usize) -> RunConfig {
    let mut config = RunConfig::default();
    config.dataset.path = folder.join("graph");
    config.partition.parts = Parts::Count(2);
    config.task.kind = TaskKind::Custom;
    config.task.name = Some("node-ranking".into());
    config.model.hidden = 32;
    config.model.dropout = 0.2;
    config.sample.fanouts = vec![10, 10];
    config.sample.batch_size = 64;
    config.train.workers = 2;
    config.train.epochs = epochs;
    config.train.checkpoint_seconds = 0.0;
    config.output.dir = folder.join("run");
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_learned_and_evaluated() {
        let dir = tempfile::tempdir().unwrap();
        let finished = example(dir.path(), 8).unwrap();
        let losses = &finished.summary.losses;
        assert!(losses[7] < 0.7 * losses[0], "{losses:?}");
        // Guessing scores 0.
        let test = finished.summary.test["spearman"];
        assert!(test > 0.6, "rank correlation {test}");
        let run = &finished.summary.run_dir;
        assert!(run.join("report.html").exists());
        assert_eq!(registry().unwrap().eval_run(run, None).unwrap().test["spearman"], test);
        let error = gnarl::train::eval_run(run, None).unwrap_err().to_string();
        assert!(error.contains("node-ranking"), "{error}");
    }
}
