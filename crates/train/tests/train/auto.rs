//! `train.strategy = "auto"`.

use std::path::Path;
use std::time::Duration;

use gnarl_config::RunConfig;
use gnarl_config::{Method, Strategy, TaskKind};
use gnarl_engine::{Communicator, local};
use gnarl_graph::Dataset;
use gnarl_graph::generate::{
    Attributes, CommunityOptions, HeteroOptions, community, heterogeneous,
};
use gnarl_nn::models::{self, Aggregator};
use gnarl_planner::RunPlan;
use gnarl_train::{Begin, run, run_on};

fn config(dir: &Path, name: &str) -> RunConfig {
    let graph = dir.join("graph");
    if !graph.exists() {
        let attributes = Attributes {
            features: 12,
            classes: 3,
            train: 0.4,
            valid: 0.3,
            test: 0.3,
            ..Attributes::default()
        };
        let options =
            CommunityOptions { nodes: 700, communities: 3, attributes, ..Default::default() };
        community(&options, &graph).unwrap();
    }
    let mut config = RunConfig::default();
    config.dataset.path = graph;
    config.model.name = "gcn".into();
    config.model.hidden = 16;
    config.sample.batch_size = 100;
    config.train.strategy = Strategy::Auto;
    config.train.workers = 2;
    config.train.epochs = 2;
    config.train.threads = 2;
    config.train.deadline_seconds = 60.0;
    config.output.dir = dir.join(name);
    config
}

/// Rates at which `gradient` is slow: drawing an edge takes a second.
fn slow_sampling(config: &mut RunConfig) {
    config.plan.edge = 1.0;
}

/// Rates at which `tensor` is slow: little can be sent, and it has more to send than the gradients of
/// one step.
fn slow_links(config: &mut RunConfig) {
    (config.plan.link, config.plan.edge, config.sample.batch_size) = (10.0, 0.0, 0);
}

fn written(config: &RunConfig) -> RunConfig {
    let text = std::fs::read_to_string(config.output.dir.join("config.toml")).unwrap();
    toml::from_str(&text).unwrap()
}

#[test]
fn the_fastest_strategy_trains_and_is_written_down() {
    let dir = tempfile::tempdir().unwrap();
    type Change = fn(&mut RunConfig);
    let cases: [(&str, Change, Strategy); 2] =
        [("columns", slow_sampling, Strategy::Tensor), ("batches", slow_links, Strategy::Gradient)];
    for (name, change, expected) in cases {
        let mut config = config(dir.path(), name);
        change(&mut config);
        let dataset = Dataset::open(&config.dataset.path).unwrap();
        let plan = RunPlan::of(&config, &dataset, &[2]).unwrap();
        assert_eq!(plan.fastest().unwrap().strategy, expected, "{}", plan.verdict());
        let finished = run(&config, Begin::Fresh, &|_| ()).unwrap();
        assert_eq!(finished.config.train.strategy, expected);
        assert_eq!(written(&config), finished.config);
        // The same as if the run file had named it.
        let mut named = config.clone();
        named.train.strategy = expected;
        named.output.dir = dir.path().join(format!("{name}-named"));
        let named = run(&named, Begin::Fresh, &|_| ()).unwrap();
        assert_eq!(named.summary.losses, finished.summary.losses);
    }
}

/// In a graph of several types, too, where layers and batches have other costs.
#[test]
fn heterogeneous_graphs_train_with_the_fastest_strategy() {
    let dir = tempfile::tempdir().unwrap();
    let options = HeteroOptions { nodes: 800, edges: 6000, ..Default::default() };
    heterogeneous(&options, &dir.path().join("typed")).unwrap();
    for (change, expected) in [
        (slow_sampling as fn(&mut RunConfig), Strategy::Tensor),
        (slow_links as fn(&mut RunConfig), Strategy::Gradient),
    ] {
        let mut config = config(dir.path(), &expected.to_string());
        config.dataset.path = dir.path().join("typed");
        config.model.name = "rgcn".into();
        change(&mut config);
        let finished = run(&config, Begin::Fresh, &|_| ()).unwrap();
        assert_eq!(finished.config.train.strategy, expected);
        assert!(finished.summary.losses.iter().all(|loss| loss.is_finite()));
    }
}

#[test]
fn all_ranks_choose_alike() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path(), "run");
    slow_sampling(&mut config);
    let deadline = Duration::from_secs(60);
    let all = local::run(3, deadline, |rank| {
        let mut own = config.clone();
        // What may differ between ranks does not decide.
        own.train.threads = 1 + rank.rank();
        run_on(rank, &own, Begin::Fresh, &|_| ())
    });
    let finished = all.unwrap().swap_remove(0).unwrap();
    assert_eq!(finished.config.train.strategy, Strategy::Tensor);
    assert_eq!(finished.history.len(), 2);
}

#[test]
fn a_run_is_resumed_with_the_strategy_it_was_begun_with() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path(), "run");
    slow_sampling(&mut config);
    let first = run(&config, Begin::Fresh, &|_| ()).unwrap();
    std::fs::remove_file(config.output.dir.join("summary.json")).unwrap();
    let again = run(&config, Begin::Resume, &|_| ()).unwrap();
    assert_eq!(again.summary.losses, first.summary.losses);
    // Other rates that choose alike do not matter, nor does naming the strategy.
    config.plan.edge = 2.0;
    run(&config, Begin::Resume, &|_| ()).unwrap();
    config.train.strategy = Strategy::Tensor;
    run(&config, Begin::Resume, &|_| ()).unwrap();
    config.train.strategy = Strategy::Auto;
    (config.plan.link, config.plan.edge) = (1e-6, 0.0);
    let error = run(&config, Begin::Resume, &|_| ()).map(drop).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("train.strategy differs"), "{error}");
}

#[test]
fn what_no_strategy_can_train_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str, change: &dyn Fn(&mut RunConfig)| {
        let mut config = config(dir.path(), name);
        change(&mut config);
        config.check().unwrap();
        let error = run(&config, Begin::Fresh, &|_| ()).map(drop).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        assert!(!config.output.dir.exists(), "{name}");
        error.to_string()
    };
    let memory = refused("memory", &|c| c.plan.memory = bytesize::ByteSize(10));
    assert!(memory.contains("plan.memory is 10 B"), "{memory}");
    let subgraphs = refused("subgraphs", &|c| {
        (c.model.name, c.sample.method) = ("ngnn".into(), Method::SaintNode);
        c.model.aggregator = Aggregator::Lstm;
    });
    assert!(
        subgraphs.contains("do not support subgraphs and neighborhoods by walks"),
        "{subgraphs}"
    );
    // Full-graph steps could train it, without the sampler it asks for.
    let clusters = refused("clusters", &|c| c.sample.method = Method::ClusterGcn);
    assert!(clusters.contains("set train.strategy to 'gradient'"), "{clusters}");
    let links = refused("links", &|c| c.task.kind = TaskKind::LinkPrediction);
    assert!(links.contains("only tasks of nodes are predicted"), "{links}");
    let mut config = config(dir.path(), "rates");
    config.plan.flops = 0.0;
    assert!(config.check().unwrap_err().to_string().contains("plan.flops '0'"));
}

/// Only strategies that can train a model are chosen: what is said of models is what they do.
#[test]
fn models_that_say_they_share_out_columns_do() {
    let dir = tempfile::tempdir().unwrap();
    let all = models::names().iter().map(|name| (*name, Aggregator::Mean));
    for (name, aggregator) in all.chain([("sage", Aggregator::Lstm), ("sage", Aggregator::MaxPool)])
    {
        let mut config = config(dir.path(), &format!("{name}-{aggregator:?}"));
        (config.model.name, config.model.aggregator) = (name.into(), aggregator);
        (config.train.strategy, config.train.epochs) = (Strategy::Tensor, 1);
        let said = models::check_columns(&config.model).is_ok();
        let done = run(&config, Begin::Fresh, &|_| ()).is_ok();
        assert_eq!(said, done, "{name}, {aggregator:?}");
    }
}
