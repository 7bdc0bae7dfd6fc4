//! Training on batches that were prepared beforehand: the numbers of drawing them.

use std::path::{Path, PathBuf};

use gnarl_config::{BatchSource, Method, Parts, RunConfig, Strategy, TaskKind};
use gnarl_graph::Dataset;
use gnarl_partition::{PartLayout, PartitionConfig, partition_dataset};
use gnarl_train::{Begin, PreparedSummary, Registry, Summary, run};

use super::bench::Bench;

fn trained(config: &RunConfig) -> Summary {
    config.check().unwrap();
    run(config, Begin::Restart, &|_| ()).unwrap().summary
}

fn error(config: &RunConfig) -> String {
    let error = run(config, Begin::Restart, &|_| ()).err().unwrap();
    assert_eq!(error.exit_code(), 2, "{error}");
    error.to_string()
}

/// Prepares batches of so many epochs of `config` beside its folder.
fn prepare(config: &RunConfig, epochs: usize) -> (PathBuf, PreparedSummary) {
    let out = config.output.dir.with_extension("batches");
    drop(std::fs::remove_dir_all(&out));
    let made = Registry::default().prepare(config, epochs, &out).unwrap();
    (out, made)
}

/// The run that trains on the batches of `config` in `from`.
fn on_batches(config: &RunConfig, from: PathBuf) -> RunConfig {
    let mut config = config.clone();
    (config.sample.source, config.sample.batches) = (BatchSource::Batches, Some(from));
    config
}

/// Six parts of `graph` of layout `storage`, at `out`.
fn cut(graph: &Path, out: &Path) {
    let wanted = PartitionConfig {
        layout: PartLayout::Storage,
        parts: gnarl_partition::Parts::Count(6),
        ..PartitionConfig::default()
    };
    partition_dataset(&Dataset::open(graph).unwrap(), &wanted, out).unwrap();
}

/// Asserts that batches prepared for all epochs of a run have its numbers; returns their folder, and what was made.
fn assert_train_as_drawn(config: &RunConfig, what: &str) -> (PathBuf, PreparedSummary) {
    let expected = trained(config);
    let (from, made) = prepare(config, config.train.epochs);
    let found = trained(&on_batches(config, from.clone()));
    assert_eq!((&found.losses, &found.test), (&expected.losses, &expected.test), "{what}");
    (from, made)
}

#[test]
fn prepared_batches_train_as_drawn_ones() {
    for (method, model, workers) in [
        (Method::Neighbor, "sage", 1),
        (Method::Exact, "gat", 2),
        (Method::Labor, "gcn", 3),
        (Method::Full, "gin", 2),
        (Method::SaintNode, "gcn", 2),
        (Method::Walk, "sage", 1),
    ] {
        let bench = Bench::new();
        let mut config = bench.config("run");
        config.sample.method = method;
        config.model.name = model.into();
        config.train.workers = workers;
        config.sample.accumulate = if method == Method::SaintNode { 2 } else { 1 };
        let (_, made) = assert_train_as_drawn(&config, &format!("{method:?}"));
        assert!(made.batches > 0 && made.bytes > 0 && made.workers == workers, "{made:?}");
    }
}

#[test]
fn prepared_edges_train_as_drawn_ones() {
    let bench = Bench::new();
    let mut config = bench.config("links");
    config.task.kind = TaskKind::LinkPrediction;
    config.embedding.dim = 16;
    config.negatives.count = 16;
    config.sample.batch_size = 256;
    config.train.workers = 2;
    assert_train_as_drawn(&config, "links");

    let bench = crate::edges::Bench::new();
    let mut config = RunConfig::default();
    config.dataset.path = bench.plain("classes");
    config.task.kind = TaskKind::EdgeClassification;
    config.sample.fanouts = vec![4, 3];
    config.sample.batch_size = 100;
    config.train.epochs = 2;
    config.output.dir = bench.path("run");
    assert_train_as_drawn(&config, "classes");
}

/// Node types without features have embeddings, whose rows batches name.
#[test]
fn prepared_batches_of_heterogeneous_graphs_train_as_drawn_ones() {
    let bench = crate::heterogeneous::Bench::new();
    let mut config = bench.config("rgcn", "run");
    (config.train.epochs, config.train.workers) = (2, 2);
    let mut links = config.clone();
    links.task.node_type = None;
    links.task.kind = TaskKind::LinkPrediction;
    links.task.edge_type = Some("paper:r0:author".into());
    (links.task.valid, links.task.test) = (0.1, 0.1);
    (links.embedding.dim, links.negatives.count) = (16, 16);
    for (mut config, model) in [(config.clone(), "rgcn"), (config, "hgt"), (links, "rgcn")] {
        config.model.name = model.into();
        assert_train_as_drawn(&config, model);
    }
    let mut config = bench.config("rgcn", "parts");
    config.train.epochs = 2;
    config.train.strategy = Strategy::Disaggregated;
    config.disaggregated.resident = 2;
    let parts = bench.path("parts of storage");
    cut(&bench.path("graph"), &parts);
    config.partition.path = Some(parts);
    assert_train_as_drawn(&config, "parts in memory");
}

/// Batches of one message graph make no model over another.
#[test]
fn batches_by_relation_are_for_models_by_relation() {
    let bench = Bench::new();
    let mut config = bench.config("links");
    config.task.kind = TaskKind::LinkPrediction;
    config.model.name = "rgcn".into();
    config.embedding.dim = 16;
    config.negatives.count = 16;
    config.sample.batch_size = 256;
    let (from, _) = assert_train_as_drawn(&config, "rgcn");
    let mut on = on_batches(&config, from);
    on.model.name = "sage".into();
    let text = error(&on);
    assert!(text.contains("message graph = edges"), "{text}");
}

/// Batches of parts in memory are trained without the parts.
#[test]
fn batches_of_parts_in_memory_train_as_these() {
    let bench = Bench::new();
    let parts = bench.path("parts");
    cut(&bench.path("graph"), &parts);
    for workers in [1, 2] {
        let mut config = bench.config("run");
        config.train.strategy = Strategy::Disaggregated;
        config.partition.path = Some(parts.clone());
        config.disaggregated.resident = 2;
        config.train.workers = workers;
        let expected = trained(&config);
        let (from, _) = prepare(&config, config.train.epochs);
        std::fs::rename(&parts, bench.path("elsewhere")).unwrap();
        let found = trained(&on_batches(&config, from));
        std::fs::rename(bench.path("elsewhere"), &parts).unwrap();
        assert_eq!((&found.losses, &found.test), (&expected.losses, &expected.test), "{workers}");
    }
}

#[test]
fn the_same_batches_come_whatever_the_threads() {
    let bench = Bench::new();
    let files = |threads: usize| {
        let mut config = bench.config(&format!("run-{threads}"));
        config.train.threads = threads;
        config.train.workers = 2;
        let (from, _) = prepare(&config, 2);
        let read = |name: &str| std::fs::read(from.join(name)).unwrap();
        ["batches.json", "epoch-1/rank-0.arrow", "epoch-2/rank-1.arrow"].map(read)
    };
    let one = files(1);
    assert!(one == files(3), "files differ");
}

#[test]
fn further_epochs_have_the_same_steps_in_another_order() {
    let bench = Bench::new();
    let mut config = bench.config("run");
    let (from, _) = prepare(&config, 2);
    config.train.epochs = 5;
    let mut config = on_batches(&config, from);
    let whole = trained(&config);
    assert_eq!(whole.losses.len(), 5);
    config.train.workers = 1;
    config.output.dir = bench.path("again");
    config.train.epochs = 3;
    trained(&config);
    config.train.epochs = 5;
    let resumed = run(&config, Begin::Resume, &|_| ()).unwrap().summary;
    assert_eq!((resumed.losses, resumed.test), (whole.losses, whole.test));
}

#[test]
fn batches_of_another_run_are_told_and_damaged_ones() {
    let bench = Bench::new();
    let config = bench.config("run");
    let (from, _) = prepare(&config, 1);
    let run_on = on_batches(&config, from.clone());
    let mut other = run_on.clone();
    other.sample.fanouts = vec![5, 4];
    let text = error(&other);
    assert!(text.contains("sample.fanouts = [5, 5]") && text.contains("[5, 4]"), "{text}");
    let mut two = run_on.clone();
    two.train.workers = 2;
    assert!(error(&two).contains("for 1 workers"));
    let mut averaging = run_on.clone();
    averaging.train.strategy = Strategy::Average;
    averaging.partition.parts = Parts::Count(2);
    assert!(error(&averaging).contains("strategy 'gradient'"));
    let mut edges = run_on.clone();
    edges.model.name = "gat".into();
    edges.model.edge_features = true;
    assert!(error(&edges).contains("model.edge_features"));
    let mut deeper = run_on.clone();
    (deeper.model.layers, deeper.sample.fanouts) = (3, vec![5, 5, 5]);
    assert!(error(&deeper).contains("[5, 5, 5]"));
    let mut nowhere = run_on.clone();
    nowhere.sample.batches = None;
    assert!(error(&nowhere).contains("sample.batches"));

    let file = from.join("epoch-1/rank-0.arrow");
    let whole = std::fs::read(&file).unwrap();
    for (at, expected) in [(whole.len() / 2, "checksum"), (whole.len() - 40, "rank-0.arrow")] {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            std::fs::write(&file, &damaged).unwrap();
            if let Err(error) = run(&run_on, Begin::Restart, &|_| ()) {
                let text = error.to_string();
                assert!(text.contains("rank-0.arrow") && text.contains(expected), "{text}");
            } else {
                // Some bits of a footer say nothing.
                assert!(expected != "checksum", "bit {bit} of byte {at}");
            }
        }
    }
    std::fs::write(&file, &whole).unwrap();
    trained(&run_on);
    let (other, _) = prepare(&config, 2);
    assert_eq!(other, from);
    let mut longer = run_on.clone();
    longer.train.epochs += 1;
    let text = run(&longer, Begin::Resume, &|_| ()).err().unwrap().to_string();
    assert!(text.contains("batches differ"), "{text}");
    prepare(&config, 1);
    std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    let text = run(&run_on, Begin::Restart, &|_| ()).err().unwrap().to_string();
    assert!(text.contains("bytes, expected"), "{text}");
    std::fs::remove_file(from.join("batches.json")).unwrap();
    let text = run(&run_on, Begin::Restart, &|_| ()).err().unwrap().to_string();
    assert!(text.contains("batches.json"), "{text}");
}

#[test]
fn what_is_not_prepared_is_told() {
    let bench = Bench::new();
    let plain = || bench.config("run");
    let mut average = plain();
    average.train.strategy = Strategy::Average;
    let mut local = plain();
    local.task.kind = TaskKind::LinkPrediction;
    local.negatives.kind = "local".into();
    let mut parts = plain();
    parts.partition.parts = Parts::Count(3);
    let mut again = plain();
    again.sample.source = BatchSource::Batches;
    for (config, expected) in [
        (average, "strategy 'average'"),
        (local, "negatives.kind = 'local'"),
        (parts, "partition.parts"),
        (again, "prepared already"),
    ] {
        let error = Registry::default().prepare(&config, 1, &bench.path("out")).err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
    assert!(!bench.path("out").exists());
}
