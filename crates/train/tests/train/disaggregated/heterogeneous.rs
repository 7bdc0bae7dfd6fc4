//! Heterogeneous graphs on the parts that are in memory.

use gnarl_config::{Deal, Method, Parts, RowStore, RunConfig, Strategy, TaskKind};
use gnarl_graph::generate::{HeteroOptions, heterogeneous};
use gnarl_partition::PartLayout;
use gnarl_train::{Begin, run};

use super::edges::{assert_as_gradient, seeds_of};
use super::{PARTS, assert_same_whoever_trains, cut, trained};
use crate::heterogeneous::Bench;

/// A run with `resident` parts of each of `slots` slots in memory.
fn config(bench: &Bench, model: &str, (slots, resident): (usize, usize)) -> RunConfig {
    let mut config = bench.config(model, "run");
    config.train.epochs = 3;
    config.train.strategy = Strategy::Disaggregated;
    config.partition.parts = Parts::Count(PARTS);
    config.partition.algorithm = "ldg".into();
    (config.disaggregated.slots, config.disaggregated.resident) = (slots, resident);
    config
}

/// Link prediction between two of the node types.
fn links(bench: &Bench, parts: (usize, usize)) -> RunConfig {
    let mut config = config(bench, "rgcn", parts);
    config.task.node_type = None;
    config.task.kind = TaskKind::LinkPrediction;
    config.task.edge_type = Some("paper:r0:author".into());
    (config.task.valid, config.task.test) = (0.1, 0.1);
    config.embedding.dim = 16;
    config.decoder.name = "dot".into();
    config.negatives.count = 16;
    config.sample.batch_size = 256;
    config
}

#[test]
fn all_parts_in_memory_train_as_the_whole_graph() {
    let bench = Bench::new();
    let parts = bench.path("parts");
    cut(&bench.path("graph"), PartLayout::Storage, &parts);
    let methods = [Method::Neighbor, Method::Labor, Method::Full, Method::Exact];
    for (method, model) in methods.into_iter().zip(["rgcn", "hgt", "rgat", "hetero"]) {
        let mut config = config(&bench, model, (2, 3));
        config.sample.method = method;
        config.partition.path = Some(parts.clone());
        let mut whole = config.clone();
        whole.train.strategy = Strategy::Gradient;
        whole.output.dir = bench.path("whole");
        let expected = trained(&whole);
        let found = trained(&config);
        assert_eq!(found.losses, expected.losses, "{model}");
        assert_eq!(found.test, expected.test, "{model}");
    }
}

#[test]
fn few_parts_in_memory_train_the_same_whoever_trains() {
    let bench = Bench::new();
    for slots in [1, 2] {
        let config = config(&bench, "rgcn", (slots, 2 / slots));
        assert_same_whoever_trains(&config, &format!("{slots} slots"));
    }
}

#[test]
fn an_epoch_of_few_parts_has_every_training_node_once_and_learns() {
    let bench = Bench::new();
    let mut config = config(&bench, "rgcn", (1, 2));
    config.train.epochs = 5;
    let few = seeds_of(&config);
    let found = trained(&config);
    assert!(found.losses[4] < found.losses[0], "{:?}", found.losses);
    config.train.strategy = Strategy::Gradient;
    config.output.dir = bench.path("whole");
    assert_eq!(few, seeds_of(&config));
}

/// The embeddings of parts are read and written with these, in files in the order of parts.
#[test]
fn embeddings_in_files_change_no_number() {
    let bench = Bench::new();
    for (parts, workers) in [((1, 2), 1), ((2, 1), 2), ((2, 3), 3)] {
        let mut config = config(&bench, "rgcn", parts);
        config.train.workers = workers;
        (config.train.epochs, config.train.eval_every) = (4, 2);
        let expected = trained(&config);
        let model = || std::fs::read(config.output.dir.join("model.safetensors")).unwrap();
        let rows = model();
        let mut files = config.clone();
        files.embedding.store = RowStore::File;
        let found = trained(&files);
        assert_eq!((&found.losses, &found.test), (&expected.losses, &expected.test), "{parts:?}");
        assert!(model() == rows, "{parts:?}, {workers} workers");
        files.train.epochs = 2;
        trained(&files);
        files.train.epochs = 4;
        let resumed = run(&files, Begin::Resume, &|_| ()).unwrap().summary;
        assert_eq!(resumed.losses, expected.losses, "{parts:?}, resumed");
        assert!(model() == rows, "{parts:?}, resumed");
    }
}

#[test]
fn embeddings_in_files_need_a_part_for_each_rank() {
    let bench = Bench::new();
    let mut many = config(&bench, "rgcn", (1, 2));
    many.partition.parts = Parts::Count(2);
    (many.embedding.store, many.train.workers) = (RowStore::File, 3);
    let error = run(&many, Begin::Restart, &|_| ()).err().unwrap();
    assert!(error.to_string().contains("fewer parts than 3 ranks"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

/// A part that was made of other nodes is told from those of its partition.
#[test]
fn a_part_of_another_partition_ends_the_run_by_its_number() {
    let bench = Bench::new();
    let parts = bench.path("parts");
    cut(&bench.path("graph"), PartLayout::Storage, &parts);
    let mut config = config(&bench, "rgcn", (1, 2));
    config.partition.path = Some(parts.clone());
    trained(&config);
    let options = HeteroOptions { nodes: 900, edges: 9000, ..HeteroOptions::default() };
    heterogeneous(&options, &bench.path("other")).unwrap();
    cut(&bench.path("other"), PartLayout::Storage, &bench.path("others"));
    std::fs::remove_dir_all(parts.join("part-3")).unwrap();
    std::fs::rename(bench.path("others/part-3"), parts.join("part-3")).unwrap();
    let text = run(&config, Begin::Restart, &|_| ()).err().unwrap().to_string();
    assert!(text.contains("part 3") && text.contains("another partition"), "{text}");
}

#[test]
fn links_between_types_train_as_those_of_the_whole_graph() {
    let bench = Bench::new();
    for kind in ["joint", "uniform", "in-batch"] {
        let mut config = links(&bench, (2, 3));
        config.negatives.kind = kind.into();
        config.output.dir = bench.path(kind);
        assert_as_gradient(config, kind);
    }
}

#[test]
fn links_between_types_of_few_parts_train_the_same_whoever_trains() {
    let bench = Bench::new();
    let config = links(&bench, (1, 2));
    assert_same_whoever_trains(&config, "links");
    let all = seeds_of(&config);
    let mut by_nodes = config;
    by_nodes.disaggregated.deal = Some(Deal::Nodes);
    let some = seeds_of(&by_nodes);
    assert!(some.iter().zip(&all).all(|(some, all)| 0 < *some && some < all), "{some:?} {all:?}");
}
