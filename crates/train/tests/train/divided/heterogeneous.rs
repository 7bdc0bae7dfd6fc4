//! Node classification on a graph of several types, two of them with embeddings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gnarl_common::Kind;
use gnarl_config::{Method, RunConfig, Servers};
use gnarl_engine::local;
use gnarl_graph::Dataset;
use gnarl_graph::generate::{Attributes, HeteroOptions, heterogeneous};
use gnarl_partition::{PartLayout, PartitionConfig, PartitionedDataset, Parts, partition_dataset};
use gnarl_serve::{ServedPart, Server, ServerConfig};
use gnarl_store::cache::CachePolicy;
use gnarl_store::cache::scores::Score;
use gnarl_train::{Begin, Finished, OpenOptions, Summary, eval_run, run, run_on};

use super::common::{PARTS, inferred, only, serve, train};

struct Bench {
    dir: tempfile::TempDir,
    graph: Dataset,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let attributes = Attributes {
            features: 8,
            noise: 1.0,
            train: 0.5,
            valid: 0.2,
            test: 0.3,
            ..Attributes::default()
        };
        let options = HeteroOptions {
            nodes: 1600,
            edges: 16_000,
            communities: 4,
            attributes,
            ..HeteroOptions::default()
        };
        let graph = heterogeneous(&options, &dir.path().join("graph")).unwrap().dataset;
        Self { dir, graph }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn cut(&self, layout: PartLayout) -> PartitionedDataset {
        let algorithm = if layout == PartLayout::EdgeCut { "ldg" } else { "adadne" };
        let (algorithm, parts) = (algorithm.into(), Parts::Count(PARTS));
        let config = PartitionConfig { algorithm, parts, layout, ..PartitionConfig::default() };
        partition_dataset(&self.graph, &config, &self.path(&layout.to_string())).unwrap().0
    }

    fn config(&self, model: &str, name: &str) -> RunConfig {
        let mut config = RunConfig::default();
        config.dataset.path = self.path("graph");
        config.task.node_type = Some("paper".into());
        config.model.name = model.into();
        config.model.hidden = 16;
        config.sample.method = Method::Exact;
        config.sample.fanouts = vec![4, 3];
        config.sample.batch_size = 100;
        config.train.epochs = 3;
        config.train.threads = 2;
        config.train.deadline_seconds = 60.0;
        config.output.dir = self.path(name);
        config
    }

    /// A run that has nothing but parts; the type of its nodes is the only one with labels.
    fn divided(&self, model: &str, name: &str, parts: &Path, servers: Servers) -> RunConfig {
        let mut config = self.config(model, name);
        config.dataset.path = PathBuf::new();
        config.task.node_type = None;
        config.partition.path = Some(parts.into());
        config.partition.servers = Some(servers);
        config
    }
}

/// Losses of whole and divided runs agree to 1e-4, scores to a node or two.
fn assert_near(a: &Summary, b: &Summary, what: &str) {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4;
    assert_eq!(a.losses.len(), b.losses.len(), "{what}");
    assert!(a.losses.iter().zip(&b.losses).all(near), "{what}: {a:?} {b:?}");
    for (name, score) in &a.test {
        assert!((score - b.test[name]).abs() < 0.01, "{what}: {a:?} {b:?}");
    }
}

#[test]
fn parts_on_one_machine_train_as_the_whole_graph() {
    let bench = Bench::new();
    let cuts = [PartLayout::EdgeCut, PartLayout::VertexCut].map(|layout| bench.cut(layout));
    for model in ["rgcn", "rgat", "hgt"] {
        let whole = train(&bench.config(model, model));
        assert!(whole.test["accuracy"] > 0.5, "{whole:?}");
        for cut in &cuts {
            for workers in [1, 3] {
                let name = format!("{model}-{}-{workers}", cut.manifest().layout);
                let mut config = bench.divided(model, &name, cut.dir(), Servers::Ranks);
                config.train.workers = workers;
                assert_near(&whole, &train(&config), &name);
            }
        }
    }
}

#[test]
fn parts_behind_servers_train_as_the_whole_graph_with_and_without_a_cache() {
    let bench = Bench::new();
    for layout in [PartLayout::EdgeCut, PartLayout::VertexCut] {
        let cut = bench.cut(layout);
        // Many steps: batches of the next epoch are prepared ahead.
        let mut whole = bench.config("rgcn", &format!("whole-{layout}"));
        whole.sample.batch_size = 20;
        let whole = train(&whole);
        let mine = bench.path(&format!("mine-{layout}"));
        only(&cut, &[1], &mine);
        let servers = [serve(&cut, &[0, 3]), serve(&cut, &[2])];
        let addresses = Servers::At(servers.iter().map(Server::uri).collect());
        let mut rates = Vec::new();
        for (policy, score, memory) in [
            (CachePolicy::ClockPro, Score::Access, "0"),
            (CachePolicy::ClockPro, Score::Access, "1MiB"),
            (CachePolicy::Fixed, Score::Access, "1MiB"),
            (CachePolicy::Fixed, Score::Degree, "8KiB"),
        ] {
            let name = format!("{layout} {policy:?} {score:?} {memory}");
            let mut config = bench.divided("rgcn", &name, &mine, addresses.clone());
            (config.cache.policy, config.cache.score) = (policy, score);
            config.cache.memory = memory.parse().unwrap();
            config.train.workers = 2;
            config.sample.batch_size = 20;
            let Finished { summary, history, .. } = run(&config, Begin::Fresh, &|_| ()).unwrap();
            assert_near(&whole, &summary, &name);
            let found = eval_run(&config.output.dir, None).unwrap();
            assert_eq!((&found.test, &found.valid), (&summary.test, &summary.valid), "{name}");
            rates.push(history[2].cache_hit_rate.unwrap());
        }
        assert_eq!(rates[0], 0.0, "{rates:?}");
        assert!(rates[1] > 0.9 && rates[2] > 0.99, "{rates:?}");
        assert!(rates[3] > 0.0 && rates[3] < rates[2], "{rates:?}");
    }
}

/// Each part of a vertex cut draws its share: other neighbors than on the whole graph, the same for any ranks, as good.
#[test]
fn shares_of_a_vertex_cut_train_alike_by_any_ranks() {
    let bench = Bench::new();
    let whole = train(&bench.config("rgcn", "whole"));
    let cut = bench.cut(PartLayout::VertexCut);
    let by = |workers: usize| {
        let name = format!("{workers}");
        let mut config = bench.divided("rgcn", &name, cut.dir(), Servers::Ranks);
        config.sample.method = Method::Neighbor;
        config.train.workers = workers;
        train(&config)
    };
    let (one, three) = (by(1), by(3));
    assert_near(&one, &three, "three workers");
    assert!((one.test["accuracy"] - whole.test["accuracy"]).abs() < 0.08, "{one:?} {whole:?}");
}

#[test]
fn fanouts_by_edge_type_and_meta_paths_sample_parts_alike() {
    let bench = Bench::new();
    let cuts = [PartLayout::EdgeCut, PartLayout::VertexCut].map(|layout| bench.cut(layout));
    let types: Vec<String> =
        bench.graph.manifest().edge_types.iter().map(|t| t.triple.to_string()).collect();
    let to_papers = types.iter().find(|name| name.ends_with(":paper")).unwrap();
    let from = to_papers.split(':').next().unwrap();
    let before = types.iter().find(|name| name.ends_with(&format!(":{from}"))).unwrap();
    for by_path in [false, true] {
        let change = |config: &mut RunConfig| match by_path {
            true => config.sample.meta_path = vec![to_papers.clone(), before.clone()],
            false => {
                config.sample.edge_fanouts =
                    [(to_papers.clone(), vec![-1, 0]), (before.clone(), vec![0, 2])].into();
            }
        };
        let mut config = bench.config("rgcn", &format!("whole-{by_path}"));
        change(&mut config);
        let whole = train(&config);
        for cut in &cuts {
            let name = format!("{by_path}-{}", cut.manifest().layout);
            let mut config = bench.divided("rgcn", &name, cut.dir(), Servers::Ranks);
            change(&mut config);
            config.train.workers = 2;
            assert_near(&whole, &train(&config), &name);
        }
    }
}

#[test]
fn models_on_parts_are_inferred_as_on_the_whole_graph() {
    let bench = Bench::new();
    for model in ["rgcn", "hgt"] {
        let mut config = bench.config(model, model);
        config.train.epochs = 1;
        train(&config);
        let whole = inferred(&config, &OpenOptions::default(), 1);
        for layout in [PartLayout::EdgeCut, PartLayout::VertexCut] {
            let cut = bench.cut(layout);
            let name = format!("{model}-{layout}");
            let mut divided = bench.divided(model, &name, cut.dir(), Servers::Ranks);
            divided.train.epochs = 1;
            train(&divided);
            for ranks in [1, 3] {
                let found = inferred(&divided, &OpenOptions::default(), ranks);
                assert_eq!(found.len(), whole.len());
                let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * (1.0 + a.abs());
                assert!(found.iter().zip(&whole).all(near), "{name} {ranks} ranks");
            }
            std::fs::remove_dir_all(cut.dir()).unwrap();
        }
    }
}

#[test]
fn ranks_of_a_group_train_on_parts() {
    let bench = Bench::new();
    let whole = train(&bench.config("rgcn", "whole"));
    let cut = bench.cut(PartLayout::EdgeCut);
    let config = bench.divided("rgcn", "ranks", cut.dir(), Servers::Ranks);
    let deadline = Duration::from_secs(60);
    let all = local::run(3, deadline, |rank| run_on(rank, &config, Begin::Fresh, &|_| ())).unwrap();
    assert_near(&whole, &all[0].as_ref().unwrap().summary, "three ranks");
}

#[test]
fn what_is_missing_is_told() {
    let bench = Bench::new();
    let cut = bench.cut(PartLayout::EdgeCut);
    let fails = |config: &RunConfig| run(config, Begin::Fresh, &|_| ()).err().unwrap();
    let mut config = bench.divided("rgcn", "a", cut.dir(), Servers::Ranks);
    config.task.node_type = Some("papers".into());
    let error = fails(&config);
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().contains("unknown node type 'papers'"), "{error}");
    config.task.node_type = Some("author".into());
    let text = format!("{:?}", fails(&config));
    assert!(text.contains("type 'author'") && text.contains("no labels"), "{text}");
    config.task.node_type = None;
    config.cache.lists = "1MiB".parse().unwrap();
    let error = fails(&config);
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().contains("cache.lists"), "{error}");
    let mut config =
        bench.divided("rgcn", "b", bench.cut(PartLayout::VertexCut).dir(), Servers::Ranks);
    config.sample.method = Method::Weighted;
    let error = fails(&config);
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().contains("has no weights to sample by"), "{error}");
    assert!(!bench.path("a").exists() && !bench.path("b").exists(), "no run folder is left");
    // A server of another partition.
    let mut other = PartitionConfig { parts: Parts::Count(PARTS), ..PartitionConfig::default() };
    (other.seed, other.algorithm) = (9, "random".into());
    let (other, _) = partition_dataset(&bench.graph, &other, &bench.path("other")).unwrap();
    only(&cut, &[0, 1, 2], &bench.path("three"));
    let held = vec![Arc::new(ServedPart::open(&other, 3).unwrap())];
    let server = Server::start(held, &ServerConfig::default()).unwrap();
    let at = Servers::At(vec![server.uri()]);
    let error = fails(&bench.divided("rgcn", "c", &bench.path("three"), at));
    assert!(error.to_string().contains("part 3 belongs to another"), "{error}");
}
