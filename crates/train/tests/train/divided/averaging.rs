//! Model averaging of parts without the whole dataset: the numbers of runs that have it.

use std::path::{Path, PathBuf};

use gnarl_config::{Method, RunConfig, Servers, Strategy, TaskKind};
use gnarl_graph::Dataset;
use gnarl_graph::generate::{
    Attributes, CommunityOptions, HeteroOptions, community, heterogeneous,
};
use gnarl_partition::{PartitionConfig, PartitionedDataset, Parts, partition_dataset};
use gnarl_serve::Server;
use gnarl_train::{Begin, Summary, eval_run, run};

use super::common::{PARTS, only, serve, train};
use super::edge_tasks::{cut, divided};

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new(types: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let attributes = Attributes {
            features: 8,
            noise: 1.0,
            classes: 4,
            train: 0.5,
            valid: 0.2,
            test: 0.3,
            ..Attributes::default()
        };
        let graph = dir.path().join("graph");
        match types {
            true => {
                let options = HeteroOptions {
                    nodes: 1200,
                    edges: 10_000,
                    communities: 4,
                    attributes,
                    ..HeteroOptions::default()
                };
                heterogeneous(&options, &graph).unwrap();
            }
            false => {
                let options = CommunityOptions {
                    nodes: 600,
                    communities: 4,
                    average_degree: 8.0,
                    attributes,
                    ..CommunityOptions::default()
                };
                community(&options, &graph).unwrap();
            }
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn config(&self, model: &str, name: &str) -> RunConfig {
        let mut config = RunConfig::default();
        config.dataset.path = self.path("graph");
        config.model.name = model.into();
        (config.model.hidden, config.model.layers) = (16, 2);
        config.embedding.dim = 16;
        config.sample.fanouts = vec![5, 5];
        config.sample.batch_size = 50;
        config.negatives.count = 16;
        config.train.strategy = Strategy::Average;
        config.train.sync_every = 2;
        config.train.epochs = 4;
        config.train.threads = 2;
        config.train.deadline_seconds = 60.0;
        config.output.dir = self.path(name);
        config
    }

    fn parts(&self) -> PartitionedDataset {
        let (algorithm, parts) = ("ldg".into(), Parts::Count(PARTS));
        let wanted = PartitionConfig { algorithm, parts, hops: 2, ..PartitionConfig::default() };
        let graph = Dataset::open(self.path("graph")).unwrap();
        partition_dataset(&graph, &wanted, &self.path("parts")).unwrap().0
    }
}

/// Losses are equal: parts train alike wherever the others are. Evaluation adds up in another order over parts.
fn assert_alike(a: &Summary, b: &Summary, what: &str) {
    assert_eq!(a.losses, b.losses, "{what}");
    for (name, score) in &a.test {
        assert!((score - b.test[name]).abs() < 0.003, "{what}: {a:?} {b:?}");
    }
}

/// Trains `config` with the dataset and with parts alone, by some numbers of workers.
fn assert_own_parts_suffice(config: &RunConfig, parts: &Path, what: &str) {
    let mut whole = config.clone();
    whole.partition.path = Some(parts.into());
    let whole = train(&whole);
    for workers in [1, 3, 4] {
        let name = format!("{what}, {workers} workers");
        let mut config = divided(config, &name, parts, Servers::Ranks);
        config.train.workers = workers;
        assert_alike(&whole, &train(&config), &name);
    }
}

#[test]
fn parts_train_alone_without_the_dataset() {
    let bench = Bench::new(false);
    let cut = bench.parts();
    for model in ["sage", "gcn"] {
        let config = bench.config(model, model);
        assert_own_parts_suffice(&config, cut.dir(), model);
    }
}

#[test]
fn typed_parts_with_embeddings_train_alone_without_the_dataset() {
    let bench = Bench::new(true);
    let cut = bench.parts();
    let mut config = bench.config("rgcn", "rgcn");
    config.task.node_type = Some("paper".into());
    assert_own_parts_suffice(&config, cut.dir(), "rgcn");
}

/// Edges of parts train alone over messages of the whole graph, of which this host has one part.
#[test]
fn edges_of_parts_train_alone_without_the_dataset() {
    let bench = Bench::new(false);
    let mut config = bench.config("sage", "links");
    config.task.kind = TaskKind::LinkPrediction;
    config.sample.method = Method::Exact;
    let cut = cut(&config, Default::default());
    let mut whole = config.clone();
    whole.partition.path = Some(cut.dir().into());
    let whole = train(&whole);
    for workers in [1, 3, 4] {
        let name = format!("{workers} workers");
        let mut config = divided(&config, &name, cut.dir(), Servers::Ranks);
        config.train.workers = workers;
        let found = train(&config);
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4;
        assert!(whole.losses.iter().zip(&found.losses).all(near), "{whole:?} {found:?}");
    }
}

#[test]
fn a_part_that_is_to_be_trained_here_and_is_elsewhere_is_named() {
    let bench = Bench::new(false);
    let cut = bench.parts();
    let mine = bench.path("mine");
    only(&cut, &[0, 1], &mine);
    let server = serve(&cut, &[2, 3]);
    let servers = Servers::At(vec![Server::uri(&server)]);
    let config = divided(&bench.config("sage", "run"), "run", &mine, servers);
    let error = run(&config, Begin::Fresh, &|_| ()).err().unwrap();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("part 2 is to be trained on this host"), "{error}");
    assert!(!config.output.dir.join("model.safetensors").exists());
    assert!(eval_run(&config.output.dir, None).is_err());
}
