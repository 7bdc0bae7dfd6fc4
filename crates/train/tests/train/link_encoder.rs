//! Link prediction from rows that GraphSAGE puts out: any number of workers, and the self-check.

use std::path::PathBuf;

use gnarl_config::RunConfig;
use gnarl_config::{Leakage, Parts, Strategy, TaskKind};
use gnarl_graph::generate::{CommunityOptions, community};
use gnarl_graph::{DEFAULT_NODE_TYPE, DatasetWriter, FinishOptions, IdWidth, Triple};
use gnarl_train::{Begin, Summary, eval_run, run};

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { dir: tempfile::tempdir().unwrap() };
        let options = CommunityOptions { nodes: 800, communities: 8, ..Default::default() };
        community(&options, &bench.path("graph")).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn config(&self, name: &str) -> RunConfig {
        let mut config = RunConfig::default();
        config.dataset.path = self.path("graph");
        config.task.kind = TaskKind::LinkPrediction;
        config.model.name = "sage".into();
        config.model.hidden = 16;
        config.model.dropout = 0.1;
        config.embedding.dim = 16;
        config.decoder.name = "dot".into();
        config.negatives.count = 32;
        config.sample.fanouts = vec![10, 5];
        config.sample.batch_size = 512;
        config.train.epochs = 4;
        config.train.threads = 2;
        config.train.deadline_seconds = 60.0;
        config.output.dir = self.path(name);
        config
    }
}

fn train(config: &RunConfig) -> Summary {
    config.check().unwrap();
    run(config, Begin::Restart, &|_| ()).unwrap().summary
}

#[test]
fn any_number_of_workers_makes_the_same_losses() {
    let bench = Bench::new();
    let mut config = bench.config("run");
    config.loss.name = "bce".into();
    config.train.epochs = 12;
    let alone = train(&config);
    assert!(alone.losses[11] < alone.losses[0], "{:?}", alone.losses);
    assert!(alone.test["roc_auc"] > 0.6, "{:?}", alone.test);
    assert!(alone.test["average_precision"] > 0.6, "{:?}", alone.test);
    for workers in [3, 4] {
        config.train.workers = workers;
        let together = train(&config);
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4;
        let same = alone.losses.iter().zip(&together.losses).all(near);
        assert!(same, "{workers}: {:?} {:?}", alone.losses, together.losses);
    }
}

#[test]
fn edges_to_be_found_cannot_be_seen_unless_that_is_asked_for() {
    let bench = Bench::new();
    let mut config = bench.config("run");
    config.train.epochs = 1;
    let summary = train(&config);
    let found = eval_run(&config.output.dir, None).unwrap();
    assert_eq!((&found.test, &found.valid), (&summary.test, &summary.valid));
    let report = found.leakage.unwrap();
    assert!(report.train.edges > 1000 && report.valid.edges > 100 && report.test.edges > 200);
    assert_eq!([report.train.seen, report.valid.seen, report.test.seen], [0; 3], "{report:?}");
    assert!(report.verdict.starts_with("no leakage"), "{report:?}");

    config.task.leakage = Leakage::Keep;
    train(&config);
    let report = eval_run(&config.output.dir, None).unwrap().leakage.unwrap();
    assert!(report.train.seen > report.train.edges / 4, "{report:?}");
    assert!(report.verdict.contains("task.leakage = 'keep'"), "{report:?}");
}

#[test]
fn parts_train_alone_and_the_averaged_model_learns() {
    let bench = Bench::new();
    let mut config = bench.config("run");
    config.train.strategy = Strategy::Average;
    config.partition.parts = Parts::Count(3);
    config.train.epochs = 20;
    config.train.workers = 1;
    let alone = train(&config);
    assert!(alone.losses[19] < 0.9 * alone.losses[0], "{:?}", alone.losses);
    assert!(alone.test["roc_auc"] > 0.6, "{:?}", alone.test);
    for workers in [2, 3] {
        config.train.workers = workers;
        let together = train(&config);
        assert_eq!((&together.losses, &together.test), (&alone.losses, &alone.test), "{workers}");
    }
}

#[test]
fn ranks_can_be_asked_for_as_well() {
    let bench = Bench::new();
    let mut config = bench.config("run");
    config.train.epochs = 1;
    config.train.metric = Some("mrr".into());
    let summary = train(&config);
    assert_eq!(summary.metric, "mrr");
    assert!(summary.test["mrr"] > 0.0 && summary.test.contains_key("roc_auc"), "{summary:?}");
}

/// A ring of `nodes` with features, of which every tenth edge is for testing, and its reverse is not.
fn given_away(out: &std::path::Path, nodes: u64) {
    let mut writer = DatasetWriter::create(out, IdWidth::for_nodes(nodes)).unwrap();
    writer.add_node_type(DEFAULT_NODE_TYPE, nodes);
    let mut features = writer.node_column::<f32>(DEFAULT_NODE_TYPE, "features", &[2]).unwrap();
    (0..nodes).for_each(|v| features.push(&[v as f32, 1.0]).unwrap());
    let features = features.finish().unwrap();
    writer.node_type(DEFAULT_NODE_TYPE).unwrap().columns.push(features);
    let triple = Triple::plain();
    let mut edges = writer.edge_writer(&triple, None).unwrap();
    let mut split = writer.edge_column::<u8>(&triple, "split", &[]).unwrap();
    for v in 0..nodes {
        let next = (v + 1) % nodes;
        edges.push(&[v, next], &[next, v]).unwrap();
        split.push(&[if v % 10 == 0 { 2 } else { 0 }, 0]).unwrap();
    }
    let mut columns = edges.finish().unwrap();
    columns.push(split.finish().unwrap());
    writer.add_edge_type(triple, columns);
    writer
        .finish(FinishOptions { memory: 1 << 24, coalesce: false, ..Default::default() })
        .unwrap();
}

#[test]
fn held_out_edges_whose_reverses_are_trained_on_are_refused() {
    let bench = Bench::new();
    given_away(&bench.path("given"), 50);
    let mut config = bench.config("run");
    config.dataset.path = bench.path("given");
    config.train.epochs = 1;
    config.sample.batch_size = 32;
    let error = run(&config, Begin::Restart, &|_| ()).err().unwrap();
    assert!(error.to_string().contains("5 of 5 held-out edges"), "{error}");
    assert!(error.to_string().contains("task.leakage"), "{error}");
    config.task.leakage = Leakage::Keep;
    train(&config);
    let report = eval_run(&config.output.dir, None).unwrap().leakage.unwrap();
    assert_eq!((report.test.seen, report.test.edges), (5, 5));
}
