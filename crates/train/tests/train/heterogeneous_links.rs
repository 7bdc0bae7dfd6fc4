//! Link prediction in graphs with several types of nodes: any number of workers, ranks, the self-check,
//! and bad input.

use gnarl_config::{Leakage, Method, RunConfig, TaskKind};
use gnarl_graph::generate::{Attributes, HeteroOptions, heterogeneous};
use gnarl_train::{Begin, Summary, eval_run, run};

/// A graph of four node types, two of them without features, and eight edge types.
fn graph(dir: &std::path::Path) {
    let attributes = Attributes { features: 8, noise: 0.5, ..Attributes::default() };
    let options = HeteroOptions {
        nodes: 1600,
        edges: 24_000,
        communities: 4,
        attributes,
        ..Default::default()
    };
    heterogeneous(&options, dir).unwrap();
}

fn config(dir: &std::path::Path, name: &str) -> RunConfig {
    let mut config = RunConfig::default();
    config.dataset.path = dir.join("graph");
    config.task.kind = TaskKind::LinkPrediction;
    config.task.edge_type = Some("paper:r0:author".into());
    (config.task.valid, config.task.test) = (0.1, 0.1);
    config.model.name = "rgcn".into();
    (config.model.hidden, config.model.layers, config.model.dropout) = (16, 2, 0.0);
    config.embedding.dim = 16;
    config.sample.fanouts = vec![5, 5];
    config.sample.batch_size = 256;
    config.negatives.count = 32;
    config.train.epochs = 4;
    config.train.threads = 2;
    config.train.deadline_seconds = 120.0;
    config.output.dir = dir.join(name);
    config
}

fn train(config: &RunConfig) -> Summary {
    run(config, Begin::Restart, &|_| ()).unwrap().summary
}

#[test]
fn any_number_of_workers_finds_the_same_edges() {
    let dir = tempfile::tempdir().unwrap();
    graph(&dir.path().join("graph"));
    for kind in ["joint", "degree", "typed", "in-batch"] {
        let with = |workers: usize| {
            let mut config = config(dir.path(), &format!("{kind}-{workers}"));
            config.negatives.kind = kind.into();
            config.train.workers = workers;
            train(&config)
        };
        let alone = with(1);
        assert!(alone.test["roc_auc"] > 0.7, "{kind}: {:?}", alone.test);
        let together = with(3);
        let same = alone.losses.iter().zip(&together.losses).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(same, "{kind}: {:?} {:?}", alone.losses, together.losses);
    }
}

#[test]
fn ends_are_ranked_among_nodes_of_their_type() {
    let dir = tempfile::tempdir().unwrap();
    graph(&dir.path().join("graph"));
    let mut config = config(dir.path(), "ranked");
    config.train.metric = Some("mrr".into());
    let found = train(&config);
    // A random guess among the nodes of a type: the mean of 1 / rank.
    assert!(found.test["mrr"] > 0.015, "{:?}", found.test);
    assert!(found.test["mrr"] <= 1.0 && found.test["hits@10"] >= found.test["hits@1"]);
    let judged = eval_run(&config.output.dir, None).unwrap();
    assert!((judged.test["mrr"] - found.test["mrr"]).abs() < 1e-9);
    let leakage = judged.leakage.unwrap();
    assert!(leakage.train.edges > 0 && leakage.train.seen == 0, "{leakage:?}");
    assert_eq!((leakage.valid.seen, leakage.test.seen), (0, 0), "{leakage:?}");
}

#[test]
fn edges_that_stay_in_the_message_graph_are_told() {
    let dir = tempfile::tempdir().unwrap();
    graph(&dir.path().join("graph"));
    let mut config = config(dir.path(), "kept");
    config.task.leakage = Leakage::Keep;
    config.sample.method = Method::Full;
    config.train.epochs = 1;
    train(&config);
    let leakage = eval_run(&config.output.dir, None).unwrap().leakage.unwrap();
    assert_eq!(leakage.train.seen, leakage.train.edges, "{leakage:?}");
    assert!(leakage.verdict.contains("task.leakage = 'keep'"), "{leakage:?}");
}

#[test]
fn what_does_not_fit_two_types_is_told() {
    let dir = tempfile::tempdir().unwrap();
    graph(&dir.path().join("graph"));
    let refuse = |change: &dyn Fn(&mut RunConfig), part: &str| {
        let mut config = config(dir.path(), "bad");
        change(&mut config);
        let error = run(&config, Begin::Restart, &|_| {}).err().expect(part);
        assert!(format!("{error:?}").contains(part), "no '{part}' in {error:?}");
    };
    refuse(&|c| c.task.edge_type = None, "task.edge_type is required");
    refuse(&|c| c.task.edge_type = Some("paper:r9:author".into()), "paper:r9:author");
    refuse(&|c| c.model.name = "none".into(), "has several types");
    refuse(&|c| c.negatives.kind = "local".into(), "endpoints of two node types");
}
