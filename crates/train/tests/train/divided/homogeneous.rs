//! Node classification on a graph of one type.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gnarl_common::Kind;
use gnarl_config::{Method, RunConfig, Servers};
use gnarl_engine::{Communicator, local};
use gnarl_graph::Dataset;
use gnarl_graph::generate::{CommunityOptions, community};
use gnarl_infer::order::NodeOrder;
use gnarl_partition::{PartLayout, PartitionConfig, PartitionedDataset, Parts, partition_dataset};
use gnarl_sample::parts::LocalPart;
use gnarl_serve::{ServedPart, Server, ServerConfig};
use gnarl_store::cache::CachePolicy;
use gnarl_store::cache::scores::Score;
use gnarl_train::{
    Begin, Finished, Infer, OpenOptions, Output, Registry, TrainedRun, eval_run, infer_on, run,
    run_on,
};

use super::common::{PARTS, assert_same, inferred, only, serve, train};

struct Bench {
    dir: tempfile::TempDir,
    graph: Dataset,
}

impl Bench {
    fn new() -> Self {
        Self::of(CommunityOptions::default())
    }

    /// A graph with the splits of `options`.
    fn of(options: CommunityOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = CommunityOptions { nodes: 1500, communities: 4, ..options };
        community(&options, &dir.path().join("graph")).unwrap();
        let graph = Dataset::open(dir.path().join("graph")).unwrap();
        Self { dir, graph }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn cut(&self, layout: PartLayout, algorithm: &str) -> PartitionedDataset {
        let (algorithm, count) = (algorithm.into(), Parts::Count(PARTS));
        let config = PartitionConfig { algorithm, parts: count, layout, ..Default::default() };
        partition_dataset(&self.graph, &config, &self.path(&layout.to_string())).unwrap().0
    }

    fn config(&self, name: &str) -> RunConfig {
        let mut config = RunConfig::default();
        config.dataset.path = self.path("graph");
        config.model.name = "sage".into();
        config.model.hidden = 16;
        config.sample.method = Method::Exact;
        config.sample.fanouts = vec![5, 5];
        config.sample.batch_size = 100;
        config.train.epochs = 4;
        config.train.threads = 2;
        config.train.deadline_seconds = 60.0;
        config.output.dir = self.path(name);
        config
    }

    /// A run that has nothing but parts.
    fn divided(&self, name: &str, parts: &Path, servers: Servers) -> RunConfig {
        let mut config = self.config(name);
        config.dataset.path = PathBuf::new();
        config.partition.path = Some(parts.into());
        config.partition.servers = Some(servers);
        config
    }
}

#[test]
fn parts_on_one_machine_train_as_the_whole_graph() {
    let bench = Bench::new();
    let whole = train(&bench.config("whole"));
    assert!(whole.test["accuracy"] > 0.5, "{whole:?}");
    for (layout, algorithm) in [(PartLayout::EdgeCut, "spring"), (PartLayout::VertexCut, "adadne")]
    {
        let cut = bench.cut(layout, algorithm);
        for workers in [1, 3, 4, 6] {
            let name = format!("{layout}-{workers}");
            let mut config = bench.divided(&name, cut.dir(), Servers::Ranks);
            config.train.workers = workers;
            assert_same(&whole, &train(&config), &name);
        }
    }
}

#[test]
fn labels_of_few_nodes_are_those_of_the_whole_graph() {
    let mut options = CommunityOptions::default();
    options.attributes.train = 0.1;
    options.attributes.valid = 0.05;
    options.attributes.test = 0.2;
    let bench = Bench::of(options);
    let whole = train(&bench.config("whole"));
    let cut = bench.cut(PartLayout::EdgeCut, "spring");
    assert_same(&whole, &train(&bench.divided("here", cut.dir(), Servers::Ranks)), "here");
    only(&cut, &[1], &bench.path("mine"));
    let server = serve(&cut, &[0, 2, 3]);
    let config = bench.divided("apart", &bench.path("mine"), Servers::At(vec![server.uri()]));
    assert_same(&whole, &train(&config), "apart");
}

#[test]
fn models_on_parts_are_inferred_as_on_the_whole_graph() {
    let bench = Bench::new();
    let cuts = [(PartLayout::EdgeCut, "spring"), (PartLayout::VertexCut, "adadne")];
    let cuts = cuts.map(|(layout, algorithm)| bench.cut(layout, algorithm));
    for (model, decoupled) in [("sage", false), ("gat", false), ("gcn", false), ("gcn", true)] {
        let mut config = bench.config(&format!("{model}-{decoupled}"));
        (config.model.name, config.model.decoupled) = (model.into(), decoupled);
        config.train.epochs = 1;
        train(&config);
        let whole = inferred(&config, &OpenOptions::default(), 1);
        for cut in &cuts {
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * (1.0 + a.abs());
            let what = format!("{model} {decoupled} {}", cut.dir().display());
            // The whole dataset, with ranks and orders by its parts.
            for (order, ranks) in [(NodeOrder::Part, 1), (NodeOrder::PartDegree, 3)] {
                let partition = Some(cut.dir().to_path_buf());
                let options = OpenOptions { order, partition, ..OpenOptions::default() };
                assert_eq!(inferred(&config, &options, ranks), whole, "{what} {order}");
            }
            // Nothing but parts: the weights of the run over the whole graph.
            let mut divided = bench.divided(&what.replace('/', "-"), cut.dir(), Servers::Ranks);
            (divided.model, divided.train.epochs) = (config.model.clone(), 1);
            train(&divided);
            for ranks in [1, 3] {
                let found = inferred(&divided, &OpenOptions::default(), ranks);
                assert_eq!(found.len(), whole.len());
                assert!(found.iter().zip(&whole).all(near), "{what} {ranks} ranks");
            }
        }
    }
}

#[test]
fn ranks_of_an_inference_have_the_same_weights() {
    let bench = Bench::new();
    let runs = ["one", "other"].map(|name| {
        let mut config = bench.config(name);
        config.train.epochs = if name == "one" { 1 } else { 2 };
        train(&config);
        let options = OpenOptions::default();
        TrainedRun::open(&Registry::default(), &config.output.dir, &options).unwrap()
    });
    let found = local::run(2, Duration::from_secs(60), |rank| {
        infer_on(&runs[rank.rank()], (rank, 1), 1, |leader| {
            leader.infer(Output::Last, &[(0, vec![3])], &mut |_, _, _| Ok(()))
        })
    });
    let error = found.unwrap_err();
    assert!(error.to_string().contains("rank 1 has gnarl"), "{error}");
}

#[test]
fn parts_behind_servers_train_as_the_whole_graph_with_and_without_a_cache() {
    let bench = Bench::new();
    let mut config = bench.config("whole");
    config.sample.method = Method::Neighbor;
    let whole = train(&config);
    let cut = bench.cut(PartLayout::EdgeCut, "spring");
    only(&cut, &[1], &bench.path("mine"));
    let servers = [serve(&cut, &[0, 3]), serve(&cut, &[2])];
    let addresses = Servers::At(servers.iter().map(Server::uri).collect());
    for memory in ["0", "10KiB", "1MiB"] {
        let mut config = bench.divided(memory, &bench.path("mine"), addresses.clone());
        config.sample.method = Method::Neighbor;
        config.train.workers = 2;
        // Else all batches of the last epoch are fetched before it begins.
        config.train.preparation_threads = 1;
        config.cache.memory = memory.parse().unwrap();
        let Finished { summary, history, .. } = run(&config, Begin::Fresh, &|_| ()).unwrap();
        assert_same(&whole, &summary, memory);
        let found = eval_run(&config.output.dir, None).unwrap();
        assert_eq!((&found.test, &found.valid), (&summary.test, &summary.valid), "evaluated again");
        let rate = history[3].cache_hit_rate.unwrap();
        assert_eq!(rate > 0.9, memory == "1MiB", "{memory}: {rate}");
        assert_eq!(rate == 0.0, memory == "0", "{memory}: {rate}");
    }
}

/// One part here and three behind servers that count, and a run on them.
struct Apart {
    bench: Bench,
    _servers: Vec<Server>,
    config: RunConfig,
    counted: Vec<LocalPart>,
}

impl Apart {
    fn new(layout: PartLayout, algorithm: &str) -> Self {
        let bench = Bench::new();
        let cut = bench.cut(layout, algorithm);
        only(&cut, &[1], &bench.path("mine"));
        let held = [0, 2, 3].map(|part| Arc::new(ServedPart::open(&cut, part).unwrap()));
        let counted = held.iter().map(|held| held.neighbors(None).unwrap().clone()).collect();
        let start = |held: &[Arc<ServedPart>]| {
            Server::start(held.to_vec(), &ServerConfig::default()).unwrap()
        };
        let servers = vec![start(&held[..2]), start(&held[2..])];
        let addresses = Servers::At(servers.iter().map(Server::uri).collect());
        let config = bench.divided("apart", &bench.path("mine"), addresses);
        Self { bench, _servers: servers, config, counted }
    }

    /// Trains, and counts the nodes whose neighbors servers were asked to draw.
    fn train(&self, name: &str, change: impl Fn(&mut RunConfig)) -> (Finished, u64) {
        let mut config = self.config.clone();
        config.output.dir = self.bench.path(name);
        change(&mut config);
        let asked = || self.counted.iter().map(|part| part.load().nodes).sum::<u64>();
        let before = asked();
        (run(&config, Begin::Fresh, &|_| ()).unwrap(), asked() - before)
    }
}

#[test]
fn rows_chosen_beforehand_are_there_before_the_first_epoch() {
    let apart = Apart::new(PartLayout::EdgeCut, "spring");
    let whole = train(&apart.bench.config("whole"));
    for score in [Score::Degree, Score::Access] {
        let mut rates = vec![];
        for memory in ["0", "40KiB", "1MiB"] {
            let name = format!("{score:?} {memory}");
            let (Finished { summary, history, .. }, _) = apart.train(&name, |config| {
                config.train.workers = 2;
                config.train.preparation_threads = 1;
                config.cache.policy = CachePolicy::Fixed;
                config.cache.score = score;
                config.cache.memory = memory.parse().unwrap();
            });
            assert_same(&whole, &summary, &name);
            rates.push((history[0].cache_hit_rate.unwrap(), history[3].cache_hit_rate.unwrap()));
        }
        assert_eq!(rates[0], (0.0, 0.0), "{score:?}");
        let (first, last) = rates[1];
        assert!(first > 0.1 && last < 0.9, "{score:?}: {rates:?}");
        assert!((first - last).abs() < 0.1, "{score:?}: nothing is learnt on the way: {rates:?}");
        // A node that the lists here never name may be met by way of other parts.
        let all = rates[2].0;
        assert!(if score == Score::Access { all == 1.0 } else { all > first }, "{rates:?}");
    }
}

#[test]
fn lists_copied_beforehand_spare_other_machines() {
    for (layout, algorithm) in [(PartLayout::EdgeCut, "spring"), (PartLayout::VertexCut, "adadne")]
    {
        let apart = Apart::new(layout, algorithm);
        let whole = train(&apart.bench.config("whole"));
        // What is asked in training alone: more epochs ask more, but for what is read before them.
        let asked = |lists: &str| {
            let [four, two] = [4, 2].map(|epochs| {
                let name = format!("{lists} {epochs}");
                let (finished, nodes) = apart.train(&name, |config| {
                    config.cache.lists = lists.parse().unwrap();
                    config.cache.policy = CachePolicy::Fixed;
                    config.cache.memory = "1MiB".parse().unwrap();
                    config.train.epochs = epochs;
                    config.train.eval_every = 0;
                });
                let expected = &whole.losses[..epochs];
                let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
                assert!(finished.summary.losses.iter().zip(expected).all(near), "{name}");
                assert_eq!(finished.history[0].cache_hit_rate, Some(1.0), "{name}");
                nodes
            });
            four - two
        };
        let (without, some, all) = (asked("0"), asked("60KiB"), asked("8MiB"));
        assert!(0 < some && some < without, "{layout}: {some} of {without}");
        assert_eq!(all, 0, "{layout}: nobody is asked");
    }
}

#[test]
fn ranks_choose_rows_by_their_own_seeds() {
    let apart = Apart::new(PartLayout::EdgeCut, "spring");
    let whole = train(&apart.bench.config("whole"));
    let mut config = apart.config.clone();
    config.cache.policy = CachePolicy::Fixed;
    config.cache.memory = "40KiB".parse().unwrap();
    config.cache.lists = "40KiB".parse().unwrap();
    let deadline = Duration::from_secs(60);
    let all = local::run(3, deadline, |rank| run_on(rank, &config, Begin::Fresh, &|_| ())).unwrap();
    let Finished { summary, history, .. } = all[0].as_ref().unwrap();
    assert_same(&whole, summary, "three ranks");
    let rate = history[0].cache_hit_rate.unwrap();
    assert!(rate > 0.1 && rate < 1.0, "{rate}");
}

#[test]
fn scores_need_lists() {
    let bench = Bench::new();
    let cut = bench.cut(PartLayout::EdgeCut, "spring");
    only(&cut, &[], &bench.path("none"));
    let server = serve(&cut, &[0, 1, 2, 3]);
    let mut config = bench.divided("a", &bench.path("none"), Servers::At(vec![server.uri()]));
    config.cache.policy = CachePolicy::Fixed;
    config.cache.memory = "1MiB".parse().unwrap();
    config.cache.score = Score::Degree;
    let error = run(&config, Begin::Fresh, &|_| ()).err().unwrap();
    assert_eq!(error.kind(), Kind::Usage);
    assert!(format!("{error:?}").contains("'access'"), "{error:?}");
    config.cache.score = Score::Access;
    let rate = run(&config, Begin::Fresh, &|_| ()).unwrap().history[0].cache_hit_rate;
    assert_eq!(rate, Some(1.0));
}

#[test]
fn ranks_of_a_group_train_on_parts() {
    let bench = Bench::new();
    let whole = train(&bench.config("whole"));
    let cut = bench.cut(PartLayout::EdgeCut, "spring");
    let config = bench.divided("ranks", cut.dir(), Servers::Ranks);
    let deadline = Duration::from_secs(60);
    let all = local::run(3, deadline, |rank| run_on(rank, &config, Begin::Fresh, &|_| ())).unwrap();
    assert_same(&whole, &all[0].as_ref().unwrap().summary, "three ranks");
}

#[test]
fn what_is_missing_is_told() {
    let bench = Bench::new();
    let cut = bench.cut(PartLayout::EdgeCut, "spring");
    let fails = |config: &RunConfig| run(config, Begin::Fresh, &|_| ()).err().unwrap();
    only(&cut, &[0, 1, 2], &bench.path("three"));
    let server = serve(&cut, &[1]);
    let config = bench.divided("a", &bench.path("three"), Servers::At(vec![server.uri()]));
    let error = fails(&config);
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().contains("part 3 is neither in"), "{error}");
    let error = fails(&bench.divided("b", &bench.path("three"), Servers::Ranks));
    assert!(format!("{error:?}").contains("part 3"), "{error:?}");
    assert!(!bench.path("a").exists() && !bench.path("b").exists(), "no run folder is left");

    let mut other = PartitionConfig { parts: Parts::Count(PARTS), ..Default::default() };
    other.seed = 9;
    other.algorithm = "random".into();
    let (other, _) = partition_dataset(&bench.graph, &other, &bench.path("other")).unwrap();
    let server = serve(&other, &[3]);
    let error = fails(&bench.divided("c", &bench.path("three"), Servers::At(vec![server.uri()])));
    assert!(error.to_string().contains("part 3 belongs to another"), "{error}");
}
