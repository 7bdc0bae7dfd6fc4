//! Strategy `tensor`: columns shared out over ranks give what one process computes.

use std::path::Path;

use gnarl_graph::generate::{Attributes, CommunityOptions, community};
use gnarl_nn::models::Aggregator;
use gnarl_train::config::{Method, Parts, RunConfig, Strategy};
use gnarl_train::{Begin, Summary, run};

/// Odd numbers of nodes, features and hidden columns, and fewer classes than ranks.
fn graph(dir: &Path) {
    let attributes = Attributes {
        features: 21,
        classes: 3,
        train: 0.4,
        valid: 0.3,
        test: 0.3,
        ..Attributes::default()
    };
    let options = CommunityOptions {
        nodes: 701,
        communities: 3,
        average_degree: 6.0,
        attributes,
        ..Default::default()
    };
    community(&options, &dir.join("graph")).unwrap();
}

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

fn train(config: &RunConfig) -> Summary {
    run(config, Begin::Fresh, &|_| ()).unwrap().summary
}

/// The weights of a finished run.
fn weights(config: &RunConfig) -> Vec<f32> {
    let bytes = std::fs::read(config.output.dir.join("model.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut all: Vec<_> = tensors.tensors();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let values = all.iter().flat_map(|(_, view)| view.data().as_chunks::<4>().0);
    values.map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn same_for_any_number_of_ranks(model: &str, change: impl Fn(&mut RunConfig)) {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path());
    let mut whole = config(dir.path(), "whole", model);
    change(&mut whole);
    let expected = train(&whole);
    assert!(expected.losses[4] < expected.losses[0], "it learns: {:?}", expected.losses);
    for workers in 1..=4 {
        let mut sliced = config(dir.path(), &format!("sliced-{workers}"), model);
        change(&mut sliced);
        sliced.train.strategy = Strategy::Tensor;
        sliced.train.workers = workers;
        let found = train(&sliced);
        let apart = expected.losses.iter().zip(&found.losses).map(|(a, b)| (a - b).abs());
        let apart = apart.fold(0.0, f64::max);
        assert!(apart < 1e-4, "{model} on {workers}: {:?} {:?}", expected.losses, found.losses);
        assert_eq!((&expected.test, &expected.valid), (&found.test, &found.valid), "{workers}");
        let apart = largest_difference(&weights(&whole), &weights(&sliced));
        assert!(apart < 1e-3, "{model} on {workers}: weights differ by {apart}");
    }
}

#[test]
fn gcn_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("gcn", |_| ());
}

#[test]
fn mean_sage_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("sage", |_| ());
}

#[test]
fn max_pool_sage_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("sage", |c| c.model.aggregator = Aggregator::MaxPool);
}

#[test]
fn gin_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("gin", |c| c.train.lr = 0.003);
}

/// Heads are cut by the shares of columns: 20 columns of 4 heads over 3 ranks.
#[test]
fn gat_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("gat", |_| ());
}

#[test]
fn what_cannot_train_by_columns_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path());
    let refused = |name: &str, change: &dyn Fn(&mut RunConfig)| {
        let mut config = config(dir.path(), name, "sage");
        config.train.strategy = Strategy::Tensor;
        config.train.workers = 2;
        change(&mut config);
        let error = config.check().and_then(|()| run(&config, Begin::Fresh, &|_| ()).map(drop));
        let error = error.unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        error.to_string()
    };
    let lstm = refused("lstm", &|c| c.model.aggregator = Aggregator::Lstm);
    assert!(lstm.contains("sage does not train by columns"), "{lstm}");
    let ngnn = refused("ngnn", &|c| c.model.name = "ngnn".into());
    assert!(ngnn.contains("ngnn does not train by columns"), "{ngnn}");
    let parts = refused("parts", &|c| c.partition.parts = Parts::Count(2));
    assert!(parts.contains("not parts"), "{parts}");
}
