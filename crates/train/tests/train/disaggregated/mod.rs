//! Training on the parts that are in memory: the numbers of `gradient` with all of them, and with few the same numbers
//! whoever trains.

mod edges;
mod heterogeneous;

use std::path::Path;

use gnarl_config::{Method, Parts, RunConfig, Strategy, TimeRule};
use gnarl_graph::Dataset;
use gnarl_partition::{PartLayout, PartitionConfig, partition_dataset};
use gnarl_train::{Begin, Summary, run};

use crate::bench::Bench;

const PARTS: usize = 6;

fn trained(config: &RunConfig) -> Summary {
    config.check().unwrap();
    run(config, Begin::Restart, &|_| ()).unwrap().summary
}

/// A run with `resident` parts of each of `slots` slots in memory.
fn with_parts(bench: &Bench, name: &str, (slots, resident): (usize, usize)) -> RunConfig {
    let mut config = bench.config(name);
    config.train.strategy = Strategy::Disaggregated;
    config.partition.parts = Parts::Count(PARTS);
    config.partition.algorithm = "ldg".into();
    (config.disaggregated.slots, config.disaggregated.resident) = (slots, resident);
    config
}

/// The parts of `graph` in the layout `layout`, at `out`.
fn cut(graph: &Path, layout: PartLayout, out: &Path) {
    let parts = gnarl_partition::Parts::Count(PARTS);
    let algorithm = "ldg".into();
    let config = PartitionConfig { algorithm, layout, parts, ..Default::default() };
    partition_dataset(&Dataset::open(graph).unwrap(), &config, out).unwrap();
}

#[test]
fn all_parts_in_memory_train_as_the_whole_graph() {
    let bench = Bench::new();
    cut(&bench.path("graph"), PartLayout::Storage, &bench.path("parts"));
    let methods =
        [Method::Neighbor, Method::Exact, Method::Labor, Method::Full, Method::Walk, Method::Ppr];
    for (method, model) in methods.into_iter().zip(["gcn", "sage", "gat", "gin", "sage", "sage"]) {
        let mut config = with_parts(&bench, "run", (2, 3));
        config.sample.method = method;
        config.model.name = model.into();
        config.partition.path = Some(bench.path("parts"));
        let mut whole = config.clone();
        whole.train.strategy = Strategy::Gradient;
        whole.output.dir = bench.path("whole");
        let (found, expected) = (trained(&config), trained(&whole));
        assert_eq!(found.losses, expected.losses, "{method:?}");
        assert_eq!(found.test, expected.test, "{method:?}");
    }
}

/// Asserts that the numbers of a run are the same for any number of threads, and of workers up to rounding.
fn assert_same_whoever_trains(config: &RunConfig, what: &str) {
    let one = trained(config);
    let mut other = config.clone();
    other.train.threads = 1;
    other.train.prefetch = 5;
    other.train.pipeline = gnarl_config::Pipeline::Off;
    assert_eq!(trained(&other).losses, one.losses, "{what}");
    for workers in [2, 3] {
        let mut several = config.clone();
        several.train.workers = workers;
        several.train.preparation_threads = workers;
        let many = trained(&several);
        for (found, expected) in many.losses.iter().zip(&one.losses) {
            assert!((found - expected).abs() < 1e-5 * expected, "{what}, {workers} workers");
        }
        assert_eq!(many.test.keys().collect::<Vec<_>>(), one.test.keys().collect::<Vec<_>>());
    }
}

#[test]
fn few_parts_in_memory_train_the_same_whoever_trains() {
    let bench = Bench::new();
    for slots in [1, 2] {
        let mut config = with_parts(&bench, "run", (slots, 2 / slots));
        config.sample.batch_size = 32;
        assert_same_whoever_trains(&config, &format!("{slots} slots"));
    }
}

#[test]
fn an_epoch_of_few_parts_has_every_training_node_once() {
    let bench = Bench::new();
    let whole = bench.config("whole");
    let config = with_parts(&bench, "run", (1, 1));
    let seeds = |config: &RunConfig| {
        let seen = std::sync::Mutex::new(Vec::new());
        run(config, Begin::Restart, &|record| seen.lock().unwrap().push(record.seeds)).unwrap();
        seen.into_inner().unwrap()
    };
    assert_eq!(seeds(&config), seeds(&whole));
}

#[test]
fn a_run_on_few_parts_resumes_to_the_same_numbers() {
    let bench = Bench::new();
    let config = with_parts(&bench, "run", (1, 2));
    let whole = trained(&config);
    let mut first = with_parts(&bench, "again", (1, 2));
    first.train.epochs = 1;
    trained(&first);
    first.train.epochs = 3;
    let resumed = run(&first, Begin::Resume, &|_| ()).unwrap().summary;
    assert_eq!((resumed.losses, resumed.test), (whole.losses, whole.test));
}

#[test]
fn a_damaged_part_ends_the_run_by_its_name() {
    let bench = Bench::new();
    cut(&bench.path("graph"), PartLayout::Storage, &bench.path("parts"));
    let mut config = with_parts(&bench, "run", (1, 2));
    config.partition.path = Some(bench.path("parts"));
    config.train.workers = 2;
    config.train.deadline_seconds = 5.0;
    for (name, said) in [
        ("part-3/_N.features.npy", "_N.features.npy"),
        ("buckets/0.src.npy", "0.src.npy"),
        ("buckets/0.offsets.npy", "offsets"),
        ("buckets/0.checksums.npy", "checksums"),
    ] {
        let path = bench.path("parts").join(name);
        let whole = std::fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        let last = damaged.len() - 2;
        damaged[last] ^= 1;
        for bytes in [&damaged, &whole[..whole.len() - 1].to_vec()] {
            std::fs::write(&path, bytes).unwrap();
            let text = run(&config, Begin::Restart, &|_| ()).err().unwrap().to_string();
            assert!(text.contains(said), "{text}");
        }
        std::fs::write(&path, whole).unwrap();
    }
    trained(&config);
    let part = bench.path("parts").join("part-3");
    std::fs::rename(&part, bench.path("elsewhere")).unwrap();
    let error = run(&config, Begin::Restart, &|_| ()).err().unwrap();
    assert!(error.to_string().contains("part 3 are not here"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn what_parts_in_memory_lack_is_told() {
    let bench = Bench::new();
    let plain = || with_parts(&bench, "run", (1, 2));
    let mut one = plain();
    one.partition.parts = Parts::Count(1);
    let mut auto = plain();
    auto.partition.parts = Parts::Auto;
    let mut clusters = plain();
    clusters.sample.method = Method::ClusterGcn;
    let mut weighted = plain();
    weighted.sample.method = Method::Weighted;
    let mut timed = plain();
    timed.sample.time = Some(TimeRule::Last);
    let mut edges = plain();
    edges.model.edge_features = true;
    let mut on_parts = plain();
    on_parts.train.evaluate_on = gnarl_config::EvaluateOn::Parts;
    let mut pairs = plain();
    pairs.disaggregated.deal = Some(gnarl_config::Deal::Pairs);
    let cases = [
        (pairs, "disaggregated.deal"),
        (one, "partition.parts"),
        (auto, "partition.parts = 'auto'"),
        (clusters, "not subgraphs"),
        (weighted, "weights of edges"),
        (timed, "sample.time"),
        (edges, "features of edges"),
        (on_parts, "evaluate_on"),
    ];
    for (config, expected) in cases {
        let error = run(&config, Begin::Restart, &|_| ()).err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.exit_code(), 2, "{error}");
    }
    for (layout, strategy, expected) in [
        (PartLayout::EdgeCut, Strategy::Disaggregated, "--layout storage"),
        (PartLayout::Storage, Strategy::Average, "--layout edge-cut"),
    ] {
        let parts = bench.path(layout.name());
        cut(&bench.path("graph"), layout, &parts);
        let mut config = plain();
        (config.train.strategy, config.partition.path) = (strategy, Some(parts));
        let error = run(&config, Begin::Restart, &|_| ()).err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.exit_code(), 2, "{error}");
    }
}
