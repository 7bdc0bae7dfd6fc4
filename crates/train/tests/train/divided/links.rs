//! Link prediction on parts that have the target edges of the task.

use std::path::PathBuf;

use gnarl_common::rng::Key;
use gnarl_config::{RunConfig, Servers, TaskKind};
use gnarl_graph::Dataset;
use gnarl_graph::generate::{
    Attributes, CommunityOptions, HeteroOptions, community, heterogeneous,
};
use gnarl_graph::import::{TriplesOptions, triples};
use gnarl_partition::{PartLayout, PartitionConfig, Parts};
use gnarl_serve::Server;
use gnarl_train::{
    Begin, EdgeModel, Finished, OpenOptions, Registry, TrainedRun, eval_run, partition_for_task,
    run,
};

use super::common::{PARTS, only, serve, train};
use super::edge_tasks::{assert_near, assert_parts_train_alike, config, cut, divided};

/// The graphs of a test.
struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// 90 entities on a ring and 5 relations that lead some steps on, each stored in one direction.
    fn knowledge(&self) {
        let mut files = [const { String::new() }; 3];
        for head in 0..90u64 {
            for relation in 0..5u64 {
                let tail = (head + 2 * relation + 1) % 90;
                let split = [0, 0, 0, 0, 1, 2][Key::new(head).below(relation, 6) as usize];
                files[split] += &format!("e{head}\tr{relation}\te{tail}\n");
            }
        }
        for (name, text) in ["train", "valid", "test"].iter().zip(files) {
            std::fs::write(self.path(name), text).unwrap();
        }
        let options = TriplesOptions {
            valid: Some(self.path("valid")),
            test: Some(self.path("test")),
            ..TriplesOptions::new(self.path("train"))
        };
        triples(&options, &self.path("graph")).unwrap();
    }

    /// A symmetric graph with features.
    fn communities(&self) {
        let attributes = Attributes { features: 8, noise: 0.5, ..Attributes::default() };
        let options = CommunityOptions {
            nodes: 400,
            communities: 4,
            average_degree: 8.0,
            attributes,
            ..CommunityOptions::default()
        };
        community(&options, &self.path("graph")).unwrap();
    }

    /// Four node types, two of them without features, and eight edge types.
    fn types(&self) {
        let attributes = Attributes { features: 8, noise: 0.5, ..Attributes::default() };
        let options = HeteroOptions {
            nodes: 800,
            edges: 9000,
            communities: 4,
            attributes,
            ..HeteroOptions::default()
        };
        heterogeneous(&options, &self.path("graph")).unwrap();
    }

    fn config(&self, model: &str, name: &str) -> RunConfig {
        config(self.dir.path(), TaskKind::LinkPrediction, model, name)
    }
}

#[test]
fn embeddings_without_a_model_learn_triples_in_parts() {
    let bench = Bench::new();
    bench.knowledge();
    let mut config = bench.config("none", "whole");
    config.decoder.name = "complex".into();
    assert_parts_train_alike(&config, "none");
}

/// Negatives depend on all training edges, or on those of a batch, wherever they lie.
#[test]
fn negatives_are_those_of_the_whole_graph() {
    let bench = Bench::new();
    bench.knowledge();
    let config = bench.config("none", "whole");
    let cut = cut(&config, PartLayout::EdgeCut);
    for (kind, filtered) in [
        ("joint", true),
        ("degree", false),
        ("typed", true),
        ("in-batch", true),
        ("uniform", false),
        ("local", false),
        ("all", true),
    ] {
        let mut config = bench.config("none", kind);
        config.decoder.name = "distmult".into();
        (config.negatives.kind, config.negatives.filtered) = (kind.into(), filtered);
        if kind == "local" {
            config.partition.path = Some(cut.dir().into());
        }
        let whole = train(&config);
        let mut config = divided(&config, &format!("{kind} in parts"), cut.dir(), Servers::Ranks);
        config.train.workers = 2;
        assert_near(&whole, &train(&config), kind);
    }
}

/// Messages pass over the reverses of edges that are stored in one direction only.
#[test]
fn relations_and_their_reverses_pass_messages_in_parts() {
    let bench = Bench::new();
    bench.knowledge();
    for model in ["rgcn", "hgt"] {
        let mut config = bench.config(model, model);
        config.decoder.name = "distmult".into();
        config.train.metric = Some("mrr".into());
        assert_parts_train_alike(&config, model);
    }
}

#[test]
fn homogeneous_encoders_train_on_parts_alike() {
    let bench = Bench::new();
    bench.communities();
    for model in ["sage", "gcn"] {
        let config = bench.config(model, model);
        assert_parts_train_alike(&config, model);
    }
}

#[test]
fn edges_between_two_node_types_train_on_parts_alike() {
    let bench = Bench::new();
    bench.types();
    for kind in ["joint", "typed"] {
        let mut config = bench.config("rgcn", kind);
        config.task.edge_type = Some("paper:r0:author".into());
        config.negatives.kind = kind.into();
        config.negatives.filtered = true;
        assert_parts_train_alike(&config, kind);
    }
}

/// Edges of the run in `config`, scored and ranked.
fn scores(config: &RunConfig, options: &OpenOptions) -> (Vec<f32>, Vec<u32>) {
    let run = TrainedRun::open(&Registry::default(), &config.output.dir, options).unwrap();
    let model = EdgeModel::of(&run, &run).unwrap();
    let mut found = Vec::new();
    for split in ["train", "valid", "test"] {
        let batch = model.split(split).unwrap().unwrap();
        model
            .score(&batch, &mut |_, scores| {
                found.extend_from_slice(scores.data());
                Ok(())
            })
            .unwrap();
    }
    let mut ranked = Vec::new();
    let given = [(3, 1), (7, 0), (11, 2)];
    let keep = &mut |_: usize, candidates: &[gnarl_nn::decoders::Candidate]| {
        ranked.extend(candidates.iter().map(|candidate| candidate.node));
        Ok(())
    };
    model.top(gnarl_graph::triples::Side::Tail, &given, (5, true), keep).unwrap();
    (found, ranked)
}

#[test]
fn parts_behind_servers_train_evaluate_and_resume_as_the_whole_graph() {
    let bench = Bench::new();
    bench.knowledge();
    for model in ["none", "rgcn"] {
        let mut config = bench.config(model, model);
        config.decoder.name = "distmult".into();
        config.negatives.filtered = true;
        config.train.metric = Some("mrr".into());
        let whole = train(&config);
        for layout in [PartLayout::EdgeCut, PartLayout::VertexCut] {
            let cut = cut(&config, layout);
            let mine = bench.path(&format!("mine {model} {layout}"));
            only(&cut, &[1], &mine);
            let servers = [serve(&cut, &[0, 3]), serve(&cut, &[2])];
            let servers = Servers::At(servers.iter().map(Server::uri).collect());
            let name = format!("{model}, {layout}");
            let mut served = divided(&config, &name, &mine, servers);
            served.train.workers = 2;
            // A run that stops after two epochs goes on to the same numbers.
            let mut begun = served.clone();
            begun.train.epochs = 2;
            train(&begun);
            let Finished { summary, .. } = run(&served, Begin::Resume, &|_| ()).unwrap();
            assert_near(&whole, &summary, &name);
            let found = eval_run(&served.output.dir, None).unwrap();
            for (metric, score) in &summary.test {
                assert!((found.test[metric] - score).abs() < 1e-6, "{name}: {found:?}");
            }
            let leakage = found.leakage.unwrap();
            assert_eq!((leakage.train.seen, leakage.valid.seen, leakage.test.seen), (0, 0, 0));
            let (on_parts, ranked) = scores(&served, &OpenOptions::default());
            let graph = OpenOptions { dataset: Some(bench.path("graph")), ..Default::default() };
            let (on_graph, expected) = scores(&served, &graph);
            let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-4;
            assert!(on_parts.len() == 450 && on_parts.iter().zip(&on_graph).all(near), "{name}");
            assert_eq!(ranked, expected, "{name}");
        }
    }
}

#[test]
fn parts_of_another_task_are_refused() {
    let bench = Bench::new();
    bench.communities();
    let config = bench.config("sage", "run");
    let cut = cut(&config, PartLayout::EdgeCut);
    let refused = |change: &dyn Fn(&mut RunConfig)| {
        let mut config = divided(&config, "refused", cut.dir(), Servers::Ranks);
        change(&mut config);
        let error = run(&config, Begin::Restart, &|_| ()).err().unwrap();
        assert_eq!(error.exit_code(), 2, "{error}");
        error.to_string()
    };
    let error = refused(&|config| config.task.valid = 0.2);
    assert!(error.contains("task.valid is 0.2, but the parts were made for 0.05"), "{error}");
    assert!(error.contains("--task RUN.toml"), "{error}");
    let error = refused(&|config| config.task.split_seed = 7);
    assert!(error.contains("task.split_seed is 7"), "{error}");
    let error = refused(&|config| config.model.name = "rgcn".into());
    assert!(error.contains("\"relations\", but the parts were made for \"edges\""), "{error}");
    let error = refused(&|config| config.task.kind = TaskKind::EdgeClassification);
    assert!(error.contains("task.kind is"), "{error}");
    let error = refused(&|config| config.sample.batch_size = 0);
    assert!(error.contains("leaves none for messages"), "{error}");

    // Parts of the dataset have no target edges, and parts of a task no labels of nodes.
    let plain = bench.path("plain");
    let dataset = Dataset::open(bench.path("graph")).unwrap();
    let wanted = PartitionConfig { parts: Parts::Count(PARTS), ..PartitionConfig::default() };
    gnarl_partition::partition_dataset(&dataset, &wanted, &plain).unwrap();
    let error = refused(&|config| config.partition.path = Some(plain.clone()));
    assert!(error.contains("the parts have no target edges"), "{error}");
}

/// Held-out edges that are training edges, too, are found while parts are made.
#[test]
fn held_out_edges_among_messages_make_no_parts() {
    let bench = Bench::new();
    for (name, text) in [("train", "a\tr\tb\nb\tr\tc\nc\tr\td\n"), ("test", "a\tr\tb\n")] {
        std::fs::write(bench.path(name), text).unwrap();
    }
    let options = TriplesOptions {
        test: Some(bench.path("test")),
        ..TriplesOptions::new(bench.path("train"))
    };
    let dataset = triples(&options, &bench.path("graph")).unwrap().dataset;
    let mut config = bench.config("rgcn", "run");
    config.sample.batch_size = 2;
    let wanted = PartitionConfig { parts: Parts::Count(2), ..PartitionConfig::default() };
    let registry = Registry::default();
    let out = bench.path("parts");
    let error = partition_for_task((&config, &registry), &dataset, &wanted, &out).unwrap_err();
    assert!(error.to_string().contains("1 of 1 held-out edges"), "{error}");
    assert!(!out.exists());
    config.model.name = "none".into();
    partition_for_task((&config, &registry), &dataset, &wanted, &out).unwrap();
    let left: Vec<_> = std::fs::read_dir(bench.dir.path()).unwrap().flatten().collect();
    assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().contains("messages")));
}
