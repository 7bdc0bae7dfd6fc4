//! Parts for tasks of edges, and runs on them.

use std::path::{Path, PathBuf};

use gnarl_config::{Method, RunConfig, Servers, TaskKind};
use gnarl_graph::Dataset;
use gnarl_partition::{PartLayout, PartitionConfig, PartitionedDataset, Parts};
use gnarl_train::{Registry, Summary, partition_for_task};

use super::common::{PARTS, train};

/// A short run of `model` over the dataset `graph` in `dir`, which predicts edges.
pub fn config(dir: &Path, kind: TaskKind, model: &str, name: &str) -> RunConfig {
    let mut config = RunConfig::default();
    config.dataset.path = dir.join("graph");
    config.task.kind = kind;
    config.model.name = model.into();
    config.model.hidden = 16;
    config.model.layers = 2;
    config.embedding.dim = 16;
    config.decoder.hidden = 16;
    config.negatives.count = 20;
    config.sample.method = Method::Exact;
    config.sample.fanouts = vec![4, 3];
    config.sample.batch_size = 100;
    config.train.epochs = 3;
    config.train.threads = 2;
    config.train.deadline_seconds = 60.0;
    config.output.dir = dir.join(name);
    config
}

/// The parts of a run's task, beside the run.
pub fn cut(config: &RunConfig, layout: PartLayout) -> PartitionedDataset {
    let algorithm = if layout == PartLayout::EdgeCut { "ldg" } else { "adadne" };
    let (algorithm, parts) = (algorithm.into(), Parts::Count(PARTS));
    let wanted = PartitionConfig { algorithm, parts, layout, ..PartitionConfig::default() };
    let run = config.output.dir.file_name().unwrap().to_string_lossy();
    let out = config.output.dir.with_file_name(format!("parts of {run}, {layout}"));
    let dataset = Dataset::open(&config.dataset.path).unwrap();
    partition_for_task((config, &Registry::default()), &dataset, &wanted, &out).unwrap().0
}

/// A run that has nothing but parts.
pub fn divided(config: &RunConfig, name: &str, parts: &Path, servers: Servers) -> RunConfig {
    let mut config = config.clone();
    config.output.dir = config.output.dir.with_file_name(name);
    config.dataset.path = PathBuf::new();
    config.partition.path = Some(parts.into());
    config.partition.servers = Some(servers);
    config
}

/// Losses agree to 1e-4, scores to a few ties that rounding breaks.
pub fn assert_near(a: &Summary, b: &Summary, what: &str) {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4;
    assert_eq!(a.losses.len(), b.losses.len(), "{what}");
    assert!(a.losses.iter().zip(&b.losses).all(near), "{what}: {a:?} {b:?}");
    for (name, score) in &a.test {
        assert!((score - b.test[name]).abs() < 0.003, "{what}: {a:?} {b:?}");
    }
}

/// Trains on parts of both layouts, by one worker and by three.
pub fn assert_parts_train_alike(config: &RunConfig, what: &str) {
    let whole = train(config);
    for layout in [PartLayout::EdgeCut, PartLayout::VertexCut] {
        let cut = cut(config, layout);
        for workers in [1, 3] {
            let name = format!("{what}, {layout}, {workers} workers");
            let mut config = divided(config, &name, cut.dir(), Servers::Ranks);
            config.train.workers = workers;
            assert_near(&whole, &train(&config), &name);
        }
    }
}
