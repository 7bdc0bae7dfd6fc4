//! Features of edges in messages: what only they tell is learned, by any number of workers, by averages over parts, and
//! resumed; runs that cannot read them are refused.

use std::path::{Path, PathBuf};

use gnarl_common::npy::NpyWriter;
use gnarl_common::rng::Key;
use gnarl_config::{Method, Parts, RunConfig, Strategy, TaskKind};
use gnarl_graph::import::{NpyOptions, npy};
use gnarl_train::{Begin, EpochRecord, Finished, eval_run, run};

const NODES: u64 = 1500;
/// Edges into each node, of which one is marked.
const INTO: u64 = 7;
const GROUPS: u64 = 3;

struct Bench(tempfile::TempDir);

impl Bench {
    /// Nodes of three groups, which their features tell. The label of a node is the group of the source of the one edge
    /// into it that is marked, by the first of its two features; the second is noise.
    fn new() -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        let key = Key::new(5);
        let group = |node: u64| key.with(1).below(node, GROUPS);
        let source = |edge: u64| key.with(2).below(edge, NODES);
        let marked = |node: u64| node * INTO + key.with(3).below(node, INTO);
        let edges = 0..NODES * INTO;
        let ends: Vec<u32> = edges.clone().map(|edge| source(edge) as u32).collect();
        let ends = [ends, edges.clone().map(|edge| (edge / INTO) as u32).collect()].concat();
        let marks = edges.flat_map(|edge| {
            let mark = f32::from(u8::from(edge == marked(edge / INTO)));
            [mark, key.with(4).normal(edge) as f32]
        });
        let groups = (0..NODES)
            .flat_map(|node| (0..GROUPS).map(move |g| f32::from(u8::from(g == group(node)))));
        let labels: Vec<i32> = (0..NODES).map(|node| group(source(marked(node))) as i32).collect();
        let split = |from: u64, to: u64| -> Vec<i64> {
            let inside = |&node: &u64| (from..to).contains(&key.with(6).below(node, 10));
            (0..NODES).filter(inside).map(|node| node as i64).collect()
        };
        let mut options = NpyOptions::new(bench.array("edges.npy", &[NODES * INTO], &ends));
        let features: Vec<f32> = groups.collect();
        options.features = Some(bench.array("features.npy", &[GROUPS], &features));
        options.labels = Some(bench.array("labels.npy", &[], &labels));
        let marks: Vec<f32> = marks.collect();
        options.edge_features = Some(bench.array("marks.npy", &[2], &marks));
        options.splits = [("train", 0, 6), ("valid", 6, 8), ("test", 8, 10)]
            .map(|(name, from, to)| {
                (name.into(), bench.array(&format!("{name}.npy"), &[], &split(from, to)))
            })
            .to_vec();
        npy(&options, &bench.path("graph")).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn array<T: gnarl_common::Element>(&self, name: &str, row: &[u64], values: &[T]) -> PathBuf {
        let mut writer = NpyWriter::create(self.path(name), row).unwrap();
        writer.push(values).unwrap();
        writer.finish().unwrap();
        self.path(name)
    }

    fn config(&self, name: &str, model: &str) -> RunConfig {
        let mut config = RunConfig::default();
        config.dataset.path = self.path("graph");
        config.model.name = model.into();
        config.model.edge_features = true;
        config.model.layers = 1;
        config.model.hidden = 16;
        config.model.dropout = 0.0;
        config.sample.fanouts = vec![-1];
        config.sample.batch_size = 128;
        config.train.lr = 0.02;
        config.train.epochs = 60;
        config.train.eval_every = 10;
        config.train.threads = 2;
        config.train.checkpoint_seconds = 0.0;
        config.train.deadline_seconds = 60.0;
        config.output.dir = self.path(name);
        config
    }
}

fn train(config: &RunConfig) -> Finished {
    run(config, Begin::Restart, &|_| ()).unwrap()
}

fn accuracy(of: &Finished) -> f64 {
    of.summary.test["accuracy"]
}

fn refused(config: &RunConfig) -> String {
    run(config, Begin::Restart, &|_| ()).map(|_| ()).unwrap_err().to_string()
}

fn model(dir: &Path) -> Vec<u8> {
    std::fs::read(dir.join("model.safetensors")).unwrap()
}

#[test]
fn labels_that_only_edges_tell_are_learned_from_their_features() {
    let bench = Bench::new();
    for name in ["gin", "gat", "gatv2"] {
        let config = bench.config(name, name);
        let with = train(&config);
        assert!(accuracy(&with) >= 0.95, "{name}: {}", accuracy(&with));
        let again = eval_run(&config.output.dir, None).unwrap();
        assert_eq!(again.test, with.summary.test, "{name}: evaluated once more");
        let mut without = bench.config(&format!("{name}-without"), name);
        without.model.edge_features = false;
        let without = train(&without);
        assert!(accuracy(&without) <= 0.7, "{name}: {}", accuracy(&without));
    }
}

#[test]
fn every_sampler_of_neighbors_and_subgraphs_reads_them() {
    let bench = Bench::new();
    for method in
        [Method::Labor, Method::Exact, Method::Full, Method::ClusterGcn, Method::SaintNode]
    {
        let mut config = bench.config(&format!("{method:?}"), "gin");
        config.sample.method = method;
        config.train.epochs = 2;
        let losses: Vec<f64> = train(&config).summary.losses;
        assert!(losses[1] < losses[0], "{method:?}: {losses:?}");
    }
}

#[test]
fn workers_change_no_loss_and_an_interruption_nothing() {
    let bench = Bench::new();
    let mut alone = bench.config("alone", "gatv2");
    alone.train.epochs = 4;
    let expected = train(&alone).summary.losses;
    let mut three = bench.config("three", "gatv2");
    three.train.epochs = 4;
    three.train.workers = 3;
    let found = train(&three).summary.losses;
    for (a, b) in expected.iter().zip(&found) {
        assert!((a - b).abs() <= 1e-4 * a, "{expected:?} {found:?}");
    }
    let mut half = bench.config("half", "gatv2");
    half.train.epochs = 2;
    train(&half);
    half.train.epochs = 4;
    run(&half, Begin::Resume, &|_: &EpochRecord| ()).unwrap();
    assert!(model(&half.output.dir) == model(&alone.output.dir), "resumed to other weights");
}

#[test]
fn parts_have_the_features_of_their_edges() {
    let bench = Bench::new();
    let mut config = bench.config("average", "gin");
    config.train.strategy = Strategy::Average;
    config.partition.parts = Parts::Count(3);
    config.train.workers = 2;
    let found = accuracy(&train(&config));
    assert!(found >= 0.95, "{found}");
}

#[test]
fn what_cannot_read_them_is_refused() {
    let bench = Bench::new();
    let text = refused(&bench.config("gcn", "gcn"));
    assert!(text.contains("gcn reads no features of edges"), "{text}");
    let mut config = bench.config("tensor", "gin");
    config.train.strategy = Strategy::Tensor;
    assert!(refused(&config).contains("features of edges"), "{}", refused(&config));
    let mut config = bench.config("links", "gin");
    config.task.kind = TaskKind::LinkPrediction;
    assert!(refused(&config).contains("without their features"), "{}", refused(&config));
    let options = gnarl_graph::generate::CommunityOptions {
        nodes: 100,
        communities: 2,
        ..Default::default()
    };
    gnarl_graph::generate::community(&options, &bench.path("plain")).unwrap();
    let mut config = bench.config("missing", "gin");
    config.dataset.path = bench.path("plain");
    let text = refused(&config);
    assert!(text.contains("edges have no features"), "{text}");
}

#[cfg(feature = "serve")]
#[test]
fn parts_on_other_hosts_train_as_the_whole_graph() {
    use gnarl_config::Servers;
    use gnarl_graph::Dataset;
    use gnarl_partition::{PartLayout, PartitionConfig, partition_dataset};
    use gnarl_serve::{ServedPart, Server, ServerConfig};
    use std::sync::Arc;

    let bench = Bench::new();
    let graph = Dataset::open(bench.path("graph")).unwrap();
    for model in ["gin", "gatv2"] {
        let mut config = bench.config(&format!("{model}-whole"), model);
        config.sample.method = Method::Exact;
        config.sample.fanouts = vec![5];
        config.train.epochs = 3;
        let whole = train(&config).summary;
        for (layout, algorithm) in [(PartLayout::EdgeCut, "ldg"), (PartLayout::VertexCut, "dbh")] {
            let name = format!("{model}-{layout}");
            let (algorithm, parts) = (algorithm.into(), gnarl_partition::Parts::Count(3));
            let cut = PartitionConfig { algorithm, parts, layout, ..PartitionConfig::default() };
            let cut =
                partition_dataset(&graph, &cut, &bench.path(&format!("{name}-parts"))).unwrap().0;
            let held = (0..3).map(|part| Arc::new(ServedPart::open(&cut, part).unwrap()));
            let server = Server::start(held.collect(), &ServerConfig::default()).unwrap();
            // No part of its own.
            let bare = bench.path(&format!("{name}-bare"));
            let copy = std::process::Command::new("cp").arg("-r").args([cut.dir(), &bare]).status();
            assert!(copy.unwrap().success());
            (0..3).for_each(|p| std::fs::remove_dir_all(bare.join(format!("part-{p}"))).unwrap());
            for (servers, parts, lists) in [
                (Servers::Ranks, cut.dir(), "0"),
                (Servers::At(vec![server.uri()]), &*bare, "0"),
                (Servers::At(vec![server.uri()]), &*bare, "1MiB"),
            ] {
                let mut config = config.clone();
                config.dataset.path = PathBuf::new();
                config.partition.path = Some(parts.into());
                config.partition.servers = Some(servers);
                config.cache.lists = lists.parse().unwrap();
                config.output.dir = bench.path(&format!("{name}-run"));
                let found = train(&config).summary;
                let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
                assert!(whole.losses.iter().zip(&found.losses).all(near), "{whole:?} {found:?}");
                assert_eq!((&whole.valid, &whole.test), (&found.valid, &found.test), "{name}");
            }
        }
    }
}
