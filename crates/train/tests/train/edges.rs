//! Labels of edges: what can be learned is, by any number of workers, and resumed; what passes messages;
//! bad input.

use std::path::{Path, PathBuf};

use gnarl_common::npy::NpyWriter;
use gnarl_common::rng::Key;
use gnarl_config::RunConfig;
use gnarl_config::{Leakage, MessagesOver, Parts, RandomSplit, Strategy, TaskKind};
use gnarl_graph::Triple;
use gnarl_graph::import::{
    HeteroNpyOptions, NpyOptions, TriplesOptions, heterogeneous_npy, npy, triples,
};
use gnarl_train::{Begin, Finished, eval_run, run};

const NODES: u64 = 120;
const EDGES: u64 = 1500;

pub(crate) struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn array<T: gnarl_common::Element>(&self, name: &str, row: &[u64], values: &[T]) -> PathBuf {
        let mut writer = NpyWriter::create(self.path(name), row).unwrap();
        writer.push(values).unwrap();
        writer.finish().unwrap();
        self.path(name)
    }

    fn mask(&self, name: &str, inside: impl Fn(u64) -> bool) -> PathBuf {
        let header = format!("{{'descr': '|b1', 'fortran_order': False, 'shape': ({EDGES},), }}");
        let header = format!("{header:<117}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend((0..EDGES).map(|row| u8::from(inside(row))));
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// Splits of 6 : 2 : 2.
    fn splits(&self) -> Vec<(String, PathBuf)> {
        let draw = |row: u64| Key::new(9).below(row, 10);
        let split = |name: &str, from: u64, to: u64| {
            let file = self.mask(&format!("{name}.npy"), |row| (from..to).contains(&draw(row)));
            (name.to_string(), file)
        };
        vec![split("train", 0, 6), split("valid", 6, 8), split("test", 8, 10)]
    }

    /// Nodes of three groups, most edges within one. An edge leads up, stays, or leads down, or several
    /// of these marks hold for it. Features tell a node's group, but not well.
    pub fn plain(&self, labels: &str) -> PathBuf {
        let ends = self.array("edges.npy", &[EDGES], &edges().concat());
        let [heads, tails] = edges();
        let order = heads.iter().zip(&tails).map(|(&h, &t)| group(h).cmp(&group(t)));
        let labels = match labels {
            "classes" => {
                let classes: Vec<i32> = order.map(|order| order as i32 + 1).collect();
                self.array("labels.npy", &[], &classes)
            }
            _ => {
                let marks =
                    |order: std::cmp::Ordering| [u8::from(order.is_lt()), u8::from(order.is_le())];
                self.array("marks.npy", &[2], &order.flat_map(marks).collect::<Vec<_>>())
            }
        };
        let features = (0..NODES).flat_map(|v| {
            (0..3).map(move |g| {
                let noise = Key::new(3).with(v).normal(g) as f32;
                f32::from(u8::from(g == group(v as u32))) + 0.7 * noise
            })
        });
        let mut options = NpyOptions::new(ends);
        options.features = Some(self.array("features.npy", &[3], &features.collect::<Vec<_>>()));
        options.edge_labels = Some(labels);
        options.edge_splits = self.splits();
        npy(&options, &self.path("plain")).unwrap();
        self.path("plain")
    }

    /// Users who rate items: how kind a user is, how good an item, and noise; no features.
    fn ratings(&self) -> PathBuf {
        let [users, items] = edges();
        let taste = |word: u64, node: u32| Key::new(word).normal(u64::from(node));
        let noise = |row: usize| 0.1 * Key::new(12).normal(row as u64);
        let ratings = users.iter().zip(&items).enumerate();
        let ratings =
            ratings.map(|(row, (&u, &i))| (taste(10, u) + taste(11, i) + noise(row) + 2.0) as f32);
        let rates: Triple = "user:rates:item".parse().unwrap();
        let splits = self.splits().into_iter();
        let options = HeteroNpyOptions {
            edges: vec![(rates.clone(), self.array("edges.npy", &[EDGES], &edges().concat()))],
            edge_values: vec![(
                rates.clone(),
                self.array("values.npy", &[], &ratings.collect::<Vec<_>>()),
            )],
            edge_splits: splits.map(|(name, path)| (rates.clone(), name, path)).collect(),
            reverse: true,
            memory: 1 << 26,
            ..HeteroNpyOptions::default()
        };
        heterogeneous_npy(&options, &self.path("ratings")).unwrap();
        self.path("ratings")
    }

    fn config(&self, dataset: &Path, name: &str) -> RunConfig {
        let mut config = RunConfig::default();
        config.dataset.path = dataset.into();
        config.task.kind = TaskKind::EdgeClassification;
        config.model.hidden = 16;
        config.model.dropout = 0.0;
        config.embedding.dim = 16;
        config.decoder.hidden = 16;
        config.sample.fanouts = vec![5, 5];
        config.sample.batch_size = 128;
        config.train.epochs = 4;
        config.train.threads = 2;
        config.train.deadline_seconds = 60.0;
        config.output.dir = self.path("runs").join(name);
        config
    }

    /// The run of ratings of items by users.
    pub fn rating(&self, name: &str) -> RunConfig {
        let mut config = self.config(&self.ratings(), name);
        config.task.kind = TaskKind::EdgeRegression;
        config.task.edge_type = Some("user:rates:item".into());
        config.model.name = "rgcn".into();
        config
    }
}

fn group(node: u32) -> u64 {
    u64::from(node) % 3
}

/// Heads and tails, no pair twice in either direction.
fn edges() -> [Vec<u32>; 2] {
    let (key, mut known) = (Key::new(5), std::collections::HashSet::new());
    let mut ends = [Vec::new(), Vec::new()];
    for draw in 0.. {
        let head = key.below(3 * draw, NODES) as u32;
        let tail = key.below(3 * draw + 1, NODES) as u32;
        let within = group(head) == group(tail);
        let wanted = within || key.unit(3 * draw + 2) < 0.5;
        if head != tail && wanted && known.insert((head.min(tail), head.max(tail))) {
            ends[0].push(head);
            ends[1].push(tail);
        }
        if ends[0].len() as u64 == EDGES {
            return ends;
        }
    }
    ends
}

fn train(config: &RunConfig) -> Finished {
    config.check().unwrap();
    run(config, Begin::Restart, &|_| ()).unwrap()
}

fn near(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4)
}

#[test]
fn classes_of_edges_are_learnt_better_with_the_graph() {
    let bench = Bench::new();
    let mut config = bench.config(&bench.plain("classes"), "run");
    config.train.epochs = 40;
    let mut scores = Vec::new();
    for model in ["sage", "mlp"] {
        config.model.name = model.into();
        config.output.dir = bench.path(model);
        let finished = train(&config);
        let found = eval_run(&config.output.dir, None).unwrap();
        assert_eq!(
            (found.test, found.valid),
            (finished.summary.test.clone(), finished.summary.valid)
        );
        scores.push(finished.summary.test["accuracy"]);
    }
    assert!(scores[0] > 0.7 && scores[0] > scores[1] + 0.05, "sage and mlp: {scores:?}");
}

#[test]
fn several_labels_of_an_edge_are_learnt() {
    let bench = Bench::new();
    let mut config = bench.config(&bench.plain("marks"), "run");
    config.train.epochs = 30;
    config.decoder.name = "bilinear".into();
    let summary = train(&config).summary;
    assert_eq!(summary.metric, "micro_f1");
    assert!(summary.test["micro_f1"] > 0.7, "{:?}", summary.test);
}

#[test]
fn numbers_of_edges_are_learnt() {
    let bench = Bench::new();
    let mut config = bench.rating("run");
    config.train.epochs = 40;
    let Finished { summary, history, .. } = train(&config);
    assert_eq!(summary.metric, "rmse");
    // The deviation from the mean is about 1.4.
    assert!(summary.test["rmse"] < 0.3, "{:?}", summary.test);
    assert!(summary.test["mae"] < summary.test["rmse"]);
    let best = history.iter().map(|record| record.valid["rmse"]).fold(f64::INFINITY, f64::min);
    assert_eq!(summary.valid["rmse"], best, "the smallest error is the best");
    assert!(summary.best_epoch > 5, "best epoch {}", summary.best_epoch);
    let found = eval_run(&config.output.dir, None).unwrap().test;
    assert!((found["rmse"] - summary.test["rmse"]).abs() < 1e-12, "{found:?} {:?}", summary.test);
}

#[test]
fn any_number_of_workers_makes_the_same_losses() {
    let bench = Bench::new();
    let (plain, rating) = (bench.config(&bench.plain("classes"), "plain"), bench.rating("rating"));
    for mut config in [plain, rating] {
        config.partition.algorithm = "random".into();
        config.partition.parts = Parts::Count(3);
        config.model.dropout = 0.2;
        let alone = train(&config).summary;
        for workers in [2, 4] {
            config.train.workers = workers;
            let together = train(&config).summary;
            let same = near(&alone.losses, &together.losses);
            assert!(same, "{workers}: {:?} {:?}", alone.losses, together.losses);
            assert_eq!(together.parts, 3);
        }
        assert!(alone.losses[3] < alone.losses[0], "{:?}", alone.losses);
    }
}

#[test]
fn a_resumed_run_ends_with_the_same_numbers() {
    let bench = Bench::new();
    let mut config = bench.rating("whole");
    config.train.checkpoint_seconds = 0.0;
    let whole = train(&config).summary;
    config.output.dir = bench.path("halves");
    let failing = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(&config, Begin::Restart, &|record| assert!(record.epoch < 3, "stopped on purpose"))
    }));
    assert!(!matches!(failing, Ok(Ok(_))), "the run was stopped");
    let resumed = run(&config, Begin::Resume, &|_| ()).unwrap().summary;
    assert_eq!((resumed.losses, resumed.test), (whole.losses, whole.test));
}

#[test]
fn edges_that_are_asked_about_pass_no_messages() {
    let bench = Bench::new();
    let plain = bench.config(&bench.plain("classes"), "plain");
    let mut relational =
        RunConfig { output: bench.config(&bench.path("plain"), "rgcn").output, ..plain.clone() };
    relational.model.name = "rgcn".into();
    for mut config in [plain, relational, bench.rating("rating")] {
        config.train.epochs = 1;
        let mut looked = |leakage, messages| {
            (config.task.leakage, config.task.messages) = (leakage, messages);
            train(&config);
            eval_run(&config.output.dir, None).unwrap().leakage.unwrap()
        };
        let found = looked(Leakage::Remove, MessagesOver::Known);
        assert!(found.train.edges > 800 && found.valid.edges > 200 && found.test.edges > 200);
        assert_eq!([found.train.seen, found.valid.seen, found.test.seen], [0; 3], "{found:?}");
        let found = looked(Leakage::Remove, MessagesOver::All);
        assert_eq!(found.train.seen, 0);
        assert_eq!((found.valid.seen, found.test.seen), (found.valid.edges, found.test.edges));
        assert!(found.verdict.contains("task.messages = 'all'"), "{}", found.verdict);
        let found = looked(Leakage::Keep, MessagesOver::Known);
        assert!(found.train.seen > found.train.edges / 4 && found.valid.seen == 0, "{found:?}");
        assert!(found.verdict.contains("task.leakage = 'keep'"), "{}", found.verdict);
    }
}

#[test]
fn parts_train_alone_and_the_averaged_model_learns() {
    let bench = Bench::new();
    for mut config in [bench.config(&bench.plain("classes"), "run"), bench.rating("typed")] {
        config.train.strategy = Strategy::Average;
        config.partition.parts = Parts::Count(3);
        config.train.epochs = 12;
        config.train.workers = 1;
        let alone = train(&config).summary;
        assert!(alone.losses[11] < 0.8 * alone.losses[0], "{:?}", alone.losses);
        for workers in [2, 3] {
            config.train.workers = workers;
            let together = train(&config).summary;
            assert_eq!(together.losses, alone.losses, "{workers} workers");
            assert_eq!(together.test, alone.test, "{workers} workers");
        }
    }
}

#[test]
fn full_graph_steps_are_those_of_all_neighbors() {
    let bench = Bench::new();
    for mut config in [bench.config(&bench.plain("marks"), "run"), bench.rating("typed")] {
        config.sample.method = gnarl_config::Method::Full;
        config.train.epochs = 3;
        let sampled = train(&config).summary;
        config.train.strategy = Strategy::Tensor;
        for workers in [1, 2, 3] {
            config.train.workers = workers;
            let whole = train(&config).summary;
            assert!(near(&whole.losses, &sampled.losses), "{workers}: {whole:?} {sampled:?}");
            let scores = |found: &gnarl_train::Summary| -> Vec<f64> {
                found.test.values().copied().collect()
            };
            assert!(near(&scores(&whole), &scores(&sampled)), "{workers}: {whole:?} {sampled:?}");
        }
    }
}

#[test]
fn splits_are_drawn_where_the_run_file_says_so() {
    let bench = Bench::new();
    let mut config = bench.config(&bench.plain("classes"), "run");
    config.dataset.split = Some(RandomSplit { train: 0.1, valid: 0.1, test: 0.8, seed: 1 });
    config.train.epochs = 1;
    let seeds = train(&config).history[0].seeds;
    assert!(seeds.abs_diff(EDGES / 10) < 40, "{seeds} training edges");
}

#[test]
fn bad_input_is_told() {
    let bench = Bench::new();
    let fails = |config: &RunConfig| match config.check() {
        Ok(()) => run(config, Begin::Restart, &|_| ()).err().unwrap(),
        Err(e) => e,
    };
    let good = bench.config(&bench.plain("classes"), "bad");
    let usage = |change: &dyn Fn(&mut RunConfig), text: &str| {
        let mut config = good.clone();
        change(&mut config);
        let error = fails(&config);
        assert!(error.exit_code() == 2 && error.to_string().contains(text), "{error}");
    };
    usage(&|c| c.model.name = "none".into(), "needs an encoder");
    let lstm = |c: &mut RunConfig| {
        c.train.strategy = Strategy::Tensor;
        c.model.name = "ngnn".into();
        c.model.aggregator = gnarl_nn::models::Aggregator::Lstm;
    };
    usage(&lstm, "the recurrence mixes all features");
    usage(&|c| c.train.metric = Some("rmse".into()), "unknown metric 'rmse'");
    usage(&|c| c.decoder.name = "complex".into(), "unknown decoder 'complex'");
    usage(&|c| c.loss.name = "margin".into(), "always uses cross-entropy");
    usage(&|c| c.sample.method = gnarl_config::Method::SaintNode, "not subgraphs");
    let invalid = |change: &dyn Fn(&mut RunConfig), text: &str| {
        let mut config = good.clone();
        change(&mut config);
        let error = fails(&config);
        assert!(error.exit_code() == 1 && error.to_string().contains(text), "{error}");
    };
    invalid(&|c| c.task.label = "rating".into(), "no column 'rating'");
    invalid(&|c| c.task.kind = TaskKind::EdgeRegression, "expected numbers");
    invalid(&|c| c.task.edge_features = true, "edges have no features");
    let mut config = bench.rating("bad");
    config.task.kind = TaskKind::EdgeClassification;
    assert!(fails(&config).to_string().contains("expected classes"));
    config.task.edge_type = None;
    let error = fails(&config);
    assert!(error.exit_code() == 2 && error.to_string().contains("user:rates:item"), "{error}");
    let mut options = NpyOptions::new(bench.path("edges.npy"));
    options.features = Some(bench.path("features.npy"));
    options.edge_labels = Some(bench.path("labels.npy"));
    npy(&options, &bench.path("bare")).unwrap();
    let error = fails(&bench.config(&bench.path("bare"), "bad")).to_string();
    assert!(error.contains("edges have no splits"), "{error}");
}

#[test]
fn relations_of_kinships_are_told() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let data = examples.join("data/kinships");
    let bench = Bench::new();
    let options = TriplesOptions {
        train: data.join("train.txt"),
        valid: Some(data.join("valid.txt")),
        test: Some(data.join("test.txt")),
        num_entities: None,
        entities: None,
        relations: None,
        delimiter: None,
        memory: 1 << 26,
    };
    triples(&options, &bench.path("kinships")).unwrap();
    let text = std::fs::read_to_string(examples.join("edges/kinships.toml")).unwrap();
    let mut config: RunConfig = toml::from_str(&text).unwrap();
    config.dataset.path = bench.path("kinships");
    let score = |model: &str| {
        let mut config = config.clone();
        config.model.name = model.into();
        config.output.dir = bench.path(model);
        train(&config).summary.test["accuracy"]
    };
    let [graph, alone] = ["rgcn", "mlp"].map(score);
    // The most frequent relation is 12 % of them.
    assert!(graph > 0.78, "rgcn {graph}, mlp {alone}");
}
