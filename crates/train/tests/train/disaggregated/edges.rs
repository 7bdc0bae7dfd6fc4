//! Edges on the parts that are in memory, by pairs of parts.

use std::path::PathBuf;
use std::sync::Mutex;

use gnarl_config::{Deal, NegativesSection, Parts, RunConfig, Strategy, TaskKind};
use gnarl_graph::Dataset;
use gnarl_partition::{PartLayout, PartitionConfig};
use gnarl_train::{Begin, Registry, partition_for_task, run};

use super::{PARTS, assert_same_whoever_trains, cut, trained, with_parts};
use crate::bench::Bench;

/// Link prediction with `resident` parts of each of `slots` slots in memory.
fn links(bench: &Bench, name: &str, parts: (usize, usize)) -> RunConfig {
    let mut config = with_parts(bench, name, parts);
    config.task.kind = TaskKind::LinkPrediction;
    config.embedding.dim = 16;
    config.decoder.name = "dot".into();
    config.negatives.count = 16;
    config.sample.batch_size = 256;
    config
}

/// The parts of a run's task, beside its folder.
fn cut_for_task(config: &RunConfig) -> PathBuf {
    let out = config.output.dir.with_extension("parts");
    let wanted = PartitionConfig {
        algorithm: "ldg".into(),
        layout: PartLayout::Storage,
        parts: gnarl_partition::Parts::Count(PARTS),
        ..PartitionConfig::default()
    };
    let dataset = Dataset::open(&config.dataset.path).unwrap();
    partition_for_task((config, &Registry::default()), &dataset, &wanted, &out).unwrap();
    out
}

/// Asserts that a run with all parts in memory has the numbers of `gradient`.
pub(super) fn assert_as_gradient(mut config: RunConfig, what: &str) {
    config.partition.path = Some(cut_for_task(&config));
    let found = trained(&config);
    config.train.strategy = Strategy::Gradient;
    let expected = trained(&config);
    assert_eq!(found.losses, expected.losses, "{what}");
    assert_eq!(found.test, expected.test, "{what}");
}

/// Examples of each epoch of a run.
pub(super) fn seeds_of(config: &RunConfig) -> Vec<u64> {
    let seen = Mutex::new(Vec::new());
    run(config, Begin::Restart, &|record| seen.lock().unwrap().push(record.seeds)).unwrap();
    seen.into_inner().unwrap()
}

#[test]
fn links_of_all_parts_in_memory_train_as_those_of_the_whole_graph() {
    for (model, kind, sides) in [
        ("sage", "joint", gnarl_config::Sides::Both),
        ("gcn", "uniform", gnarl_config::Sides::Tail),
        ("gat", "in-batch", gnarl_config::Sides::Both),
        ("gin", "all", gnarl_config::Sides::Head),
        ("rgcn", "joint", gnarl_config::Sides::Both),
    ] {
        let bench = Bench::new();
        let mut config = links(&bench, "run", (2, 3));
        config.model.name = model.into();
        config.negatives = NegativesSection { kind: kind.into(), sides, ..config.negatives };
        assert_as_gradient(config, kind);
    }
}

#[test]
fn labels_of_edges_of_all_parts_train_as_those_of_the_whole_graph() {
    let bench = crate::edges::Bench::new();
    let mut config = RunConfig::default();
    config.dataset.path = bench.plain("classes");
    config.task.kind = TaskKind::EdgeClassification;
    config.model.hidden = 16;
    config.sample.fanouts = vec![4, 3];
    config.sample.batch_size = 100;
    config.train.epochs = 3;
    config.train.threads = 2;
    config.train.strategy = Strategy::Disaggregated;
    config.partition.parts = Parts::Count(PARTS);
    config.partition.algorithm = "ldg".into();
    config.disaggregated.resident = PARTS;
    config.output.dir = bench.path("run");
    assert_as_gradient(config.clone(), "classes");
    config.disaggregated.resident = 2;
    config.output.dir = bench.path("few");
    let few = trained(&config);
    config.train.threads = 1;
    assert_eq!(trained(&config).losses, few.losses);
}

/// Heads and tails of two types are in parts of their own maps.
#[test]
fn labels_of_edges_between_types_train_as_those_of_the_whole_graph() {
    let bench = crate::edges::Bench::new();
    let mut config = bench.rating("run");
    config.train.strategy = Strategy::Disaggregated;
    config.partition.parts = Parts::Count(PARTS);
    config.partition.algorithm = "ldg".into();
    config.disaggregated.resident = PARTS;
    assert_as_gradient(config.clone(), "ratings");
    config.disaggregated.resident = 2;
    config.output.dir = bench.path("few");
    assert_same_whoever_trains(&config, "ratings");
}

#[test]
fn links_of_few_parts_train_the_same_whoever_trains() {
    let bench = Bench::new();
    for (slots, resident) in [(1, 2), (1, 3), (2, 2)] {
        let config = links(&bench, "run", (slots, resident));
        assert_same_whoever_trains(&config, &format!("{slots} x {resident}"));
    }
}

#[test]
fn an_epoch_of_few_parts_has_every_edge_once() {
    let bench = Bench::new();
    let config = links(&bench, "run", (1, 2));
    let whole = RunConfig {
        train: gnarl_config::TrainSection { strategy: Strategy::Gradient, ..config.train.clone() },
        ..config.clone()
    };
    assert_eq!(seeds_of(&config), seeds_of(&whole));
}

#[test]
fn edges_whose_endpoints_never_meet_are_left_out_if_that_is_asked_for() {
    let bench = Bench::new();
    let mut config = links(&bench, "run", (1, 2));
    let all = seeds_of(&config);
    config.disaggregated.deal = Some(Deal::Nodes);
    let some = seeds_of(&config);
    assert!(some.iter().zip(&all).all(|(some, all)| 0 < *some && some < all), "{some:?} {all:?}");
}

#[test]
fn links_of_few_parts_learn_and_resume_to_the_same_numbers() {
    let bench = Bench::new();
    let mut config = links(&bench, "run", (1, 2));
    config.loss.name = "bce".into();
    config.train.epochs = 8;
    let whole = trained(&config);
    assert!(whole.losses[7] < whole.losses[0], "{:?}", whole.losses);
    let mut first = config.clone();
    first.output.dir = bench.path("again");
    first.train.epochs = 3;
    trained(&first);
    first.train.epochs = 8;
    let resumed = run(&first, Begin::Resume, &|_| ()).unwrap().summary;
    assert_eq!((resumed.losses, resumed.test), (whole.losses, whole.test));
}

#[test]
fn what_edges_in_memory_lack_is_told() {
    let bench = Bench::new();
    let plain = || links(&bench, "run", (1, 2));
    let mut bare = plain();
    bare.model.name = "none".into();
    let mut single = plain();
    single.disaggregated.resident = 1;
    let mut local = plain();
    local.negatives.kind = "local".into();
    let mut of_dataset = plain();
    cut(&bench.path("graph"), PartLayout::Storage, &bench.path("parts"));
    of_dataset.partition.path = Some(bench.path("parts"));
    let mut other_split = plain();
    other_split.partition.path = Some(cut_for_task(&other_split));
    other_split.task.split_seed += 1;
    let mut by_relation = plain();
    by_relation.partition.path = other_split.partition.path.clone();
    by_relation.model.name = "rgcn".into();
    for (config, expected) in [
        (bare, "no embeddings of nodes"),
        (single, "disaggregated.resident"),
        (local, "negatives.kind is none of"),
        (of_dataset, "no target edges"),
        (other_split, "task.split_seed"),
        (by_relation, "the message graph is \"relations\""),
    ] {
        let error = run(&config, Begin::Restart, &|_| ()).err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.exit_code(), 2, "{error}");
    }
}
