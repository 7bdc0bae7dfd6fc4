//! Strategy `tensor`: columns shared out over ranks.

mod balance;
mod bytes;
mod chunks;
mod decoupled;
mod equal;
mod heterogeneous;
mod links;
mod part;
mod resume;
mod sparse_chunks;

use std::path::Path;

use gnarl_config::{Method, RunConfig};
use gnarl_graph::generate::{Attributes, CommunityOptions, community};
use gnarl_train::{Begin, Finished, run};

/// A graph `graph` in `dir`.
fn generate(dir: &Path, nodes: u64, features: usize, classes: u32) {
    let attributes = Attributes {
        features,
        classes,
        train: 0.4,
        valid: 0.3,
        test: 0.3,
        ..Attributes::default()
    };
    let options = CommunityOptions {
        nodes,
        communities: 3,
        average_degree: 6.0,
        attributes,
        ..Default::default()
    };
    community(&options, &dir.join("graph")).unwrap();
}

/// A run of one rank on it.
fn config(dir: &Path, name: &str, model: &str) -> RunConfig {
    let mut config = RunConfig::default();
    config.dataset.path = dir.join("graph");
    config.model.name = model.into();
    config.model.hidden = if model == "gat" { 20 } else { 19 };
    config.model.heads = 4;
    config.model.dropout = 0.3;
    config.model.attention_dropout = 0.2;
    config.sample.method = Method::Full;
    config.sample.batch_size = 0;
    config.train.epochs = 5;
    config.train.threads = 2;
    config.train.deadline_seconds = 60.0;
    config.output.dir = dir.join(name);
    config
}

fn train(config: &RunConfig) -> Finished {
    run(config, Begin::Fresh, &|_| ()).unwrap()
}
