//! Edges as of their times.

use gnarl_common::rng::Key;
use gnarl_config::{Method, Parts, RunConfig, SplitBy, Strategy, TaskKind, TimeRule};
use gnarl_graph::import::{HeteroNpyOptions, NpyOptions, heterogeneous_npy, npy};
use gnarl_graph::triples::Triples;
use gnarl_train::{EdgeBatch, EdgeModel, OpenOptions, Registry, TrainedRun};

use super::bench::{Bench, refused, score, train};

const USERS: u32 = 2000;
const ITEMS: u32 = 2000;
const GROUPS: u32 = 4;

/// A purchase. A user buys twice.
#[derive(Clone, Copy)]
pub struct Purchase {
    pub user: u32,
    pub item: u32,
    pub time: i64,
    /// The group of the user's other item.
    pub label: i32,
    /// 0 for training, 1 for validation, 2 for test.
    pub split: u8,
}

/// Purchases of which the first, or the second ones, of some users are held out. A user buys items of one group: nothing
/// tells that of the first but the second.
pub fn purchases(held_out_first: bool) -> Vec<Purchase> {
    made(held_out_first, [0, 0])
}

/// Purchases of two groups: nothing tells the label of the first but the second, and of the second but the first.
fn labeled(held_out_first: bool) -> Vec<Purchase> {
    made(held_out_first, [0, 9])
}

/// Purchases of groups that `words` tell apart.
fn made(held_out_first: bool, words: [u64; 2]) -> Vec<Purchase> {
    let key = Key::new(4);
    let mut all = Vec::new();
    for user in 0..USERS {
        let of = key.with(user.into());
        let groups = words.map(|word| of.below(word, GROUPS.into()) as u32);
        let start = of.below(1, 100_000) as i64;
        let held_out = match of.below(2, 10) {
            0..2 => 1,
            2..5 => 2,
            _ => 0,
        };
        for purchase in 0..2u32 {
            // Not the same item twice, which only its time would tell apart.
            let of_group = ITEMS / GROUPS;
            let other = 1 + of.below(4, (of_group - 1).into()) as u32;
            let place = (of.below(3, of_group.into()) as u32 + purchase * other) % of_group;
            let asked = (purchase == 0) == held_out_first;
            all.push(Purchase {
                user,
                item: place * GROUPS + groups[purchase as usize],
                time: start + 10 * i64::from(purchase),
                label: groups[1 - purchase as usize] as i32,
                split: if asked { held_out } else { 0 },
            });
        }
    }
    all
}

fn one_hot() -> Vec<f32> {
    let group =
        |item: u32| (0..GROUPS).map(move |group| f32::from(u8::from(item % GROUPS == group)));
    (0..ITEMS).flat_map(group).collect()
}

impl Bench {
    fn splits_of(&self, all: &[Purchase]) -> Vec<(String, std::path::PathBuf)> {
        let split = |(number, name): (u8, &str)| {
            let inside: Vec<bool> = all.iter().map(|one| one.split == number).collect();
            (name.to_string(), self.booleans(&format!("{name}.npy"), &inside))
        };
        [(0, "train"), (1, "valid"), (2, "test")].map(split).to_vec()
    }

    /// Nodes that are users and items at once.
    pub fn one_type(&self, name: &str, all: &[Purchase]) {
        let users = all.iter().map(|one| one.user);
        let ends: Vec<u32> = users.chain(all.iter().map(|one| one.item)).collect();
        let mut options = NpyOptions::new(self.array("edges.npy", &[all.len() as u64], &ends));
        options.features = Some(self.array("x.npy", &[GROUPS.into()], &one_hot()));
        let times: Vec<i64> = all.iter().map(|one| one.time).collect();
        options.edge_times = Some(self.array("times.npy", &[], &times));
        let labels: Vec<i32> = all.iter().map(|one| one.label).collect();
        options.edge_labels = Some(self.array("labels.npy", &[], &labels));
        options.edge_splits = self.splits_of(all);
        npy(&options, &self.path(name)).unwrap();
    }

    /// Users and items of two types, with reverses.
    pub fn two_types(&self, name: &str, all: &[Purchase]) {
        let triple: gnarl_graph::Triple = "user:bought:item".parse().unwrap();
        let users = all.iter().map(|one| one.user);
        let ends: Vec<u32> = users.chain(all.iter().map(|one| one.item)).collect();
        let times: Vec<i64> = all.iter().map(|one| one.time).collect();
        let labels: Vec<i32> = all.iter().map(|one| one.label).collect();
        let splits = self.splits_of(all).into_iter();
        let nothing = vec![0.0f32; USERS as usize];
        let options = HeteroNpyOptions {
            edges: vec![(triple.clone(), self.array("edges.npy", &[all.len() as u64], &ends))],
            features: vec![
                ("user".into(), self.array("users.npy", &[1], &nothing)),
                ("item".into(), self.array("items.npy", &[GROUPS.into()], &one_hot())),
            ],
            edge_times: vec![(triple.clone(), self.array("times.npy", &[], &times))],
            edge_labels: vec![(triple.clone(), self.array("labels.npy", &[], &labels))],
            edge_splits: splits.map(|(name, path)| (triple.clone(), name, path)).collect(),
            reverse: true,
            memory: 1 << 28,
            ..HeteroNpyOptions::default()
        };
        heterogeneous_npy(&options, &self.path(name)).unwrap();
    }

    pub fn links(&self, name: &str, time: Option<TimeRule>) -> RunConfig {
        let mut config = RunConfig::default();
        config.dataset.path = self.path("graph");
        config.task.kind = TaskKind::LinkPrediction;
        config.model.name = "sage".into();
        config.model.layers = 1;
        config.model.dropout = 0.0;
        config.model.hidden = 16;
        config.embedding.dim = 16;
        config.decoder.name = "dot".into();
        config.negatives.kind = "uniform".into();
        config.negatives.count = 4;
        config.sample.fanouts = vec![-1];
        config.sample.batch_size = 256;
        config.sample.time = time;
        config.train.lr = 0.02;
        config.train.epochs = 12;
        config.train.eval_every = 6;
        config.train.threads = 2;
        config.train.deadline_seconds = 60.0;
        config.output.dir = self.path(name);
        config
    }

    pub fn labels(&self, name: &str, time: Option<TimeRule>) -> RunConfig {
        let mut config = self.links(name, time);
        config.task.kind = TaskKind::EdgeClassification;
        config.decoder = RunConfig::default().decoder;
        config.negatives = RunConfig::default().negatives;
        config
    }
}

fn auc(config: &RunConfig) -> f64 {
    score(config, "roc_auc")
}

#[test]
fn links_that_only_the_future_tells_are_not_found() {
    let bench = Bench::new();
    bench.one_type("graph", &purchases(true));
    // Of homogeneous models, and with an edge type for each direction.
    for model in ["sage", "gat", "rgcn"] {
        let by = |name: &str, time| {
            let mut config = bench.links(name, time);
            config.model.name = model.into();
            auc(&config)
        };
        let leaking = by("leaking", None);
        let honest = by("honest", Some(TimeRule::Last));
        assert!(
            leaking >= 0.62 && honest <= 0.54,
            "{model}: {leaking} without time, {honest} with"
        );
    }
}

#[test]
fn links_that_the_past_tells_are_found() {
    let bench = Bench::new();
    bench.one_type("graph", &purchases(false));
    for rule in [TimeRule::Last, TimeRule::Uniform] {
        let found = auc(&bench.links("run", Some(rule)));
        assert!(found >= 0.68, "{rule:?}: {found}");
    }
}

#[test]
fn endpoints_are_ranked_among_nodes_that_are_drawn_for_each_edge() {
    let bench = Bench::new();
    bench.two_types("graph", &purchases(false));
    let ranked = |name: &str, time, workers: usize, epochs: usize| {
        let mut config = bench.links(name, time);
        config.model.name = "rgcn".into();
        config.task.edge_type = Some("user:bought:item".into());
        config.train.metric = Some("mrr".into());
        config.train.workers = workers;
        config.train.epochs = epochs;
        config.evaluate.candidates = 20;
        let finished = train(&config);
        let again = gnarl_train::eval_run(&config.output.dir, None).unwrap();
        assert_eq!(again.test, finished.summary.test, "evaluated once more");
        finished.summary.test
    };
    for time in [None, Some(TimeRule::Last)] {
        // One of four groups, one of 21 nodes: a fifth of them are as good.
        let learned = ranked("run", time, 1, 12);
        assert!(learned["mrr"] > 0.3 && learned["hits@10"] > 0.8, "{time:?}: {learned:?}");
        assert!(!learned.contains_key("mrr_raw") && learned.contains_key("roc_auc"));
        let (one, three) = (ranked("one", time, 1, 1), ranked("three", time, 3, 1));
        for (name, score) in &one {
            // Rounding breaks ties.
            assert!((score - three[name]).abs() < 0.02, "{time:?}, {name}: {one:?} {three:?}");
        }
    }
}

#[test]
fn links_between_two_types_are_predicted_as_of_their_times() {
    let bench = Bench::new();
    let by = |name: &str, model: &str, time| {
        let mut config = bench.links(name, time);
        config.model.name = model.into();
        config.model.heads = 2;
        config.task.edge_type = Some("user:bought:item".into());
        auc(&config)
    };
    bench.two_types("graph", &purchases(true));
    for model in ["rgcn", "rgat", "hgt", "hetero"] {
        let (leaking, honest) = (by("a", model, None), by("b", model, Some(TimeRule::Last)));
        // Who bought before is no longer about to buy first: as much is known of the past.
        assert!(
            leaking >= 0.82 && honest <= 0.67,
            "{model}: {leaking} without time, {honest} with"
        );
    }
    let bench = Bench::new();
    bench.two_types("graph", &purchases(false));
    let mut config = bench.links("past", Some(TimeRule::Uniform));
    config.model.name = "rgcn".into();
    config.task.edge_type = Some("user:bought:item".into());
    let found = auc(&config);
    assert!(found >= 0.8, "{found}");
}

#[test]
fn labels_of_edges_are_predicted_as_of_their_times() {
    // With an edge type for each direction, what a node bought is told from what its buyers are.
    for (model, sharp) in [("sage", 0.65), ("rgcn", 0.95)] {
        for first in [true, false] {
            let bench = Bench::new();
            bench.one_type("graph", &labeled(first));
            let by = |name: &str, time| {
                let mut config = bench.labels(name, time);
                config.model.name = model.into();
                config.train.epochs = 30;
                score(&config, "accuracy")
            };
            let (all, before) = (by("all", None), by("before", Some(TimeRule::Uniform)));
            assert!(all >= sharp, "{model}: {all}");
            let right = if first { before <= 0.32 } else { before >= sharp };
            assert!(right, "{model}, first {first}: {before}");
        }
    }
}

#[test]
fn scores_as_of_a_time_are_those_of_the_graph_before_it() {
    let bench = Bench::new();
    let all = purchases(false);
    bench.one_type("graph", &all);
    let mut config = bench.links("run", Some(TimeRule::Last));
    config.model.layers = 2;
    config.sample.fanouts = vec![-1, -1];
    config.train.epochs = 2;
    train(&config);
    let open = |dataset: Option<&str>| {
        let options =
            OpenOptions { dataset: dataset.map(|name| bench.path(name)), ..OpenOptions::default() };
        TrainedRun::open(&Registry::default(), &config.output.dir, &options).unwrap()
    };
    let scores = |run: &TrainedRun, edges: &Triples, times: Vec<i64>| {
        let model = EdgeModel::of(run, run).unwrap();
        let batch = EdgeBatch { edges: edges.clone(), rows: Vec::new(), times };
        let mut found = Vec::new();
        let mut keep = |_: &EdgeBatch, scores: &gnarl_nn::Tensor| {
            found.extend_from_slice(scores.data());
            Ok(())
        };
        model.score(&batch, &mut keep).unwrap();
        found
    };
    let whole = open(None);
    let mut edges = Triples::default();
    (0..50).for_each(|i| edges.push(37 * i, 0, 3 * i));
    let mut kinds = std::collections::BTreeSet::new();
    for time in [0, 30_000, 70_000] {
        let earlier: Vec<Purchase> = all.iter().copied().filter(|one| one.time < time).collect();
        if earlier.is_empty() {
            continue;
        }
        let mut earlier = earlier;
        earlier.iter_mut().for_each(|one| one.split = 0);
        let name = format!("before-{time}");
        bench.one_type(&name, &earlier);
        let before = scores(&open(Some(&name)), &edges, Vec::new());
        let as_of = scores(&whole, &edges, vec![time; edges.len()]);
        let near = before.iter().zip(&as_of).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(near, "{time}: {before:?} {as_of:?}");
        kinds.insert(format!("{as_of:?}"));
    }
    assert_eq!(kinds.len(), 2, "times make a difference");
    let model = EdgeModel::of(&whole, &whole).unwrap();
    let test = model.split("test").unwrap().unwrap();
    assert_eq!(test.times.len(), test.edges.len());
}

#[test]
fn the_latest_edges_are_held_out_where_the_dataset_has_no_splits() {
    let bench = Bench::new();
    let mut all = purchases(false);
    all.iter_mut().for_each(|one| one.split = 0);
    let ends: Vec<u32> =
        all.iter().map(|one| one.user).chain(all.iter().map(|one| one.item)).collect();
    let mut options = NpyOptions::new(bench.array("edges.npy", &[all.len() as u64], &ends));
    options.features = Some(bench.array("x.npy", &[GROUPS.into()], &one_hot()));
    let times: Vec<i64> = all.iter().map(|one| one.time).collect();
    options.edge_times = Some(bench.array("times.npy", &[], &times));
    npy(&options, &bench.path("graph")).unwrap();
    let mut config = bench.links("run", Some(TimeRule::Last));
    (config.task.valid, config.task.test) = (0.1, 0.2);
    let split = |config: &RunConfig, name: &str| {
        train(config);
        let run =
            TrainedRun::open(&Registry::default(), &config.output.dir, &OpenOptions::default());
        let run = run.unwrap();
        let found = EdgeModel::of(&run, &run).unwrap().split(name).unwrap().unwrap();
        found.times
    };
    config.train.epochs = 1;
    let [train_times, valid, test] = ["train", "valid", "test"].map(|name| split(&config, name));
    let all = train_times.len() + valid.len() + test.len();
    assert_eq!(all, 2 * USERS as usize);
    assert!(test.len().abs_diff(all / 5) <= 2 && valid.len().abs_diff(all / 10) <= 2);
    assert!(
        train_times.iter().max() < valid.iter().min() && valid.iter().max() < test.iter().min()
    );
    config.task.split_by = Some(SplitBy::Endpoints);
    let drawn = split(&config, "test");
    assert!(drawn.iter().min() < valid.iter().min());
    // Embeddings alone are split likewise.
    config.task.split_by = Some(SplitBy::Time);
    (config.model.name, config.sample.time) = ("none".into(), None);
    let finished = train(&config);
    assert!(finished.summary.test["mrr"] > 0.0);
}

#[test]
fn neither_workers_nor_threads_change_a_loss() {
    let bench = Bench::new();
    bench.two_types("graph", &purchases(false));
    let losses = |kind: TaskKind, workers: usize, threads: usize, strategy: Strategy| {
        let name = format!("{kind:?}-{workers}-{threads}-{strategy:?}");
        let mut config = match kind {
            TaskKind::LinkPrediction => bench.links(&name, Some(TimeRule::Uniform)),
            _ => bench.labels(&name, Some(TimeRule::Uniform)),
        };
        config.model.name = "rgcn".into();
        config.model.layers = 2;
        config.sample.fanouts = vec![2, 2];
        config.task.edge_type = Some("user:bought:item".into());
        config.train.strategy = strategy;
        config.train.epochs = 2;
        config.train.workers = workers;
        config.train.threads = threads;
        config.partition.parts = Parts::Count(if strategy == Strategy::Average { 3 } else { 1 });
        train(&config).summary
    };
    for kind in [TaskKind::LinkPrediction, TaskKind::EdgeClassification] {
        for strategy in [Strategy::Gradient, Strategy::Average] {
            let one = losses(kind, 1, 1, strategy);
            let three = losses(kind, 3, 3, strategy);
            let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
            assert!(one.losses.iter().zip(&three.losses).all(near), "{kind:?} {strategy:?}");
            for (name, value) in &one.test {
                let other = three.test[name];
                assert!(
                    (value - other).abs() < 1e-3,
                    "{kind:?} {strategy:?} {name}: {value} {other}"
                );
            }
        }
    }
}

#[test]
fn reverses_without_times_are_refused() {
    let bench = Bench::new();
    let all = purchases(true);
    let [users, items] = [0, 1].map(|end| -> Vec<u32> {
        all.iter().map(|one| if end == 0 { one.user } else { one.item }).collect()
    });
    let rows = [all.len() as u64];
    let [forth, back] =
        ["user:bought:item", "item:rev_bought:user"].map(|name| name.parse().unwrap());
    let times: Vec<i64> = all.iter().map(|one| one.time).collect();
    let forth: gnarl_graph::Triple = forth;
    let splits = bench.splits_of(&all).into_iter();
    let options = HeteroNpyOptions {
        edges: vec![
            (
                forth.clone(),
                bench.array("forth.npy", &rows, &[users.clone(), items.clone()].concat()),
            ),
            (back, bench.array("back.npy", &rows, &[items, users].concat())),
        ],
        features: vec![
            ("user".into(), bench.array("users.npy", &[1], &vec![0.0f32; USERS as usize])),
            ("item".into(), bench.array("items.npy", &[GROUPS.into()], &one_hot())),
        ],
        edge_times: vec![(forth.clone(), bench.array("times.npy", &[], &times))],
        edge_splits: splits.map(|(name, path)| (forth.clone(), name, path)).collect(),
        memory: 1 << 28,
        ..HeteroNpyOptions::default()
    };
    heterogeneous_npy(&options, &bench.path("graph")).unwrap();
    let mut config = bench.links("refused", Some(TimeRule::Last));
    config.model.name = "rgcn".into();
    config.task.edge_type = Some("user:bought:item".into());
    let text = refused(&config);
    assert!(text.contains("item:rev_bought:user") && text.contains("have no times"), "{text}");
    assert!(text.contains("--reverse"), "{text}");
}

#[test]
fn what_does_not_fit_times_is_refused() {
    let bench = Bench::new();
    bench.one_type("graph", &purchases(true));
    let text = |change: &dyn Fn(&mut RunConfig)| {
        let mut config = bench.links("refused", Some(TimeRule::Last));
        change(&mut config);
        refused(&config)
    };
    let found = text(&|config| config.negatives.kind = "joint".into());
    assert!(found.contains("shared by edges of different times"), "{found}");
    let found = text(&|config| config.train.metric = Some("mrr".into()));
    assert!(found.contains("as of the time of every edge"), "{found}");
    assert!(found.contains("evaluate.candidates"), "{found}");
    let found = text(&|config| config.train.strategy = Strategy::Tensor);
    assert!(found.contains("takes all edges at once"), "{found}");
    let found = text(&|config| config.sample.method = Method::Labor);
    assert!(found.contains("'neighbor', 'exact' or 'full'"), "{found}");
    let options = gnarl_graph::generate::CommunityOptions {
        nodes: 100,
        communities: 2,
        ..Default::default()
    };
    gnarl_graph::generate::community(&options, &bench.path("plain")).unwrap();
    let found = text(&|config| config.dataset.path = bench.path("plain"));
    assert!(found.contains("have no times"), "{found}");
    let found = text(&|config| {
        config.dataset.path = bench.path("plain");
        (config.sample.time, config.task.split_by) = (None, Some(SplitBy::Time));
    });
    assert!(found.contains("task.split_by") && found.contains("have no times"), "{found}");
}
