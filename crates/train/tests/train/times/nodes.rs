//! Nodes at their own times.

use std::path::{Path, PathBuf};

use gnarl_common::rng::Key;
use gnarl_config::{Method, Parts, RunConfig, Strategy, TimeRule};
use gnarl_graph::import::{HeteroNpyOptions, NpyOptions, heterogeneous_npy, npy};
use gnarl_train::{OpenOptions, Output, Registry, TrainedRun};

use super::bench::{Bench, refused, score, train};

const OLD: u64 = 300;
const NEW: u64 = 1500;
const GROUPS: u64 = 3;
/// Edges into each new node before its time, and after it.
const BEFORE: u64 = 4;
const AFTER: u64 = 4;

/// Old nodes in groups, which their features tell, and new nodes with edges from old ones.
struct Facts {
    sources: Vec<u32>,
    destinations: Vec<u32>,
    edge_times: Vec<i64>,
    labels: Vec<i32>,
}

fn group(old: u64) -> u64 {
    old % GROUPS
}

fn time_of(new: u64) -> i64 {
    1000 + Key::new(9).below(new, 500) as i64
}

impl Facts {
    /// New nodes have the label of the latest source before their time, or, if `leaks`, of all sources after it.
    fn new(leaks: bool) -> Self {
        let key = Key::new(5);
        let mut facts = Self {
            sources: Vec::new(),
            destinations: Vec::new(),
            edge_times: Vec::new(),
            labels: Vec::new(),
        };
        for new in 0..NEW {
            let any = |edge: u64| key.with(new).below(edge, OLD);
            let future = key.with(1).below(new, GROUPS);
            let mut label = future;
            for edge in 0..BEFORE + AFTER {
                let before = edge < BEFORE;
                let time = match before {
                    true => time_of(new) - 10 * (BEFORE - 1 - edge) as i64,
                    false => time_of(new) + 1 + edge as i64,
                };
                let source = if before { any(edge) } else { any(edge) / GROUPS * GROUPS + future };
                if edge == BEFORE - 1 && !leaks {
                    label = group(source);
                }
                facts.sources.push(source as u32);
                facts.destinations.push(new as u32);
                facts.edge_times.push(time);
            }
            facts.labels.push(label as i32);
        }
        facts
    }
}

impl Bench {
    /// Nodes of one type, the old ones first.
    pub fn homogeneous(&self, leaks: bool) {
        let facts = Facts::new(leaks);
        let new = facts.destinations.iter().map(|&node| node + OLD as u32);
        let ends: Vec<u32> = facts.sources.iter().copied().chain(new).collect();
        let mut options =
            NpyOptions::new(self.array("edges.npy", &[facts.sources.len() as u64], &ends));
        let one = |old: u64| (0..GROUPS).map(move |g| f32::from(u8::from(g == group(old))));
        let features = (0..OLD).flat_map(one).chain((0..NEW * GROUPS).map(|_| 0.0));
        options.features = Some(self.array("x.npy", &[GROUPS], &features.collect::<Vec<f32>>()));
        let labels: Vec<i32> = (0..OLD).map(|_| -1).chain(facts.labels).collect();
        options.labels = Some(self.array("y.npy", &[], &labels));
        let times: Vec<i64> = (0..OLD as i64).chain((0..NEW).map(time_of)).collect();
        options.times = Some(self.array("t.npy", &[], &times));
        options.edge_times = Some(self.array("et.npy", &[], &facts.edge_times));
        options.splits = self.splits(OLD);
        npy(&options, &self.path("graph")).unwrap();
    }

    /// Old and new nodes of two types; edges have no times, but old nodes have.
    pub fn typed(&self) {
        let mut facts = Facts::new(true);
        // One old node an edge, which is there from the edge's time on.
        let groups: Vec<u64> = facts.sources.iter().map(|&old| group(old.into())).collect();
        facts.sources = (0..groups.len() as u32).collect();
        let triple: gnarl_graph::Triple = "old:made:new".parse().unwrap();
        let ends = [facts.sources.clone(), facts.destinations].concat();
        let one = |&of: &u64| (0..GROUPS).map(move |g| f32::from(u8::from(g == of)));
        let features: Vec<f32> = groups.iter().flat_map(one).collect();
        let new = vec![0.0f32; (NEW * GROUPS) as usize];
        let times: Vec<i64> = (0..NEW).map(time_of).collect();
        let splits = self.splits(0).into_iter();
        let options = HeteroNpyOptions {
            edges: vec![(triple, self.array("edges.npy", &[groups.len() as u64], &ends))],
            features: vec![
                ("old".into(), self.array("old.npy", &[GROUPS], &features)),
                ("new".into(), self.array("new.npy", &[GROUPS], &new)),
            ],
            labels: vec![("new".into(), self.array("y.npy", &[], &facts.labels))],
            times: vec![
                ("old".into(), self.array("to.npy", &[], &facts.edge_times)),
                ("new".into(), self.array("tn.npy", &[], &times)),
            ],
            splits: splits.map(|(name, path)| ("new".into(), name, path)).collect(),
            memory: 1 << 28,
            ..HeteroNpyOptions::default()
        };
        heterogeneous_npy(&options, &self.path("graph")).unwrap();
    }

    fn splits(&self, first: u64) -> Vec<(String, PathBuf)> {
        let split = |from: u64, to: u64| -> Vec<i64> {
            let inside = |&node: &u64| (from..to).contains(&Key::new(6).below(node, 10));
            (0..NEW).filter(inside).map(|node| (first + node) as i64).collect()
        };
        [("train", 0, 6), ("valid", 6, 8), ("test", 8, 10)]
            .map(|(name, from, to)| {
                (name.into(), self.array(&format!("{name}.npy"), &[], &split(from, to)))
            })
            .to_vec()
    }

    pub fn config(&self, name: &str, time: Option<TimeRule>) -> RunConfig {
        let mut config = RunConfig::default();
        config.dataset.path = self.path("graph");
        config.model.name = "sage".into();
        config.model.layers = 1;
        config.model.dropout = 0.0;
        config.model.hidden = 16;
        config.sample.fanouts = vec![-1];
        config.sample.batch_size = 128;
        config.sample.time = time;
        config.train.lr = 0.02;
        config.train.epochs = 30;
        config.train.eval_every = 10;
        config.train.threads = 2;
        config.train.deadline_seconds = 60.0;
        config.output.dir = self.path(name);
        config
    }
}

fn accuracy(config: &RunConfig) -> f64 {
    score(config, "accuracy")
}

#[test]
fn labels_that_only_the_future_tells_are_not_learned() {
    let bench = Bench::new();
    bench.homogeneous(true);
    let leaking = accuracy(&bench.config("leaking", None));
    assert!(leaking >= 0.7, "{leaking}");
    for rule in [TimeRule::Last, TimeRule::Uniform] {
        let honest = accuracy(&bench.config("honest", Some(rule)));
        assert!(honest <= 0.45, "{rule:?}: {honest}");
    }
}

#[test]
fn the_latest_edge_is_drawn_first_by_last_and_by_chance_otherwise() {
    let bench = Bench::new();
    bench.homogeneous(false);
    let by = |name: &str, rule| {
        let mut config = bench.config(name, Some(rule));
        config.sample.fanouts = vec![1];
        accuracy(&config)
    };
    let last = by("last", TimeRule::Last);
    assert!(last >= 0.99, "{last}");
    let uniform = by("uniform", TimeRule::Uniform);
    assert!(uniform <= 0.7, "{uniform}");
}

#[test]
fn nodes_of_heterogeneous_graphs_are_not_read_before_they_are_there() {
    let bench = Bench::new();
    bench.typed();
    let config = |name: &str, model: &str, time| {
        let mut config = bench.config(name, time);
        config.model.name = model.into();
        config.model.heads = 2;
        config.task.node_type = Some("new".into());
        config
    };
    for model in ["rgcn", "rgat", "hgt", "hetero"] {
        let leaking = accuracy(&config("leaking", model, None));
        assert!(leaking >= 0.7, "{model}: {leaking}");
        let honest = accuracy(&config("honest", model, Some(TimeRule::Last)));
        assert!(honest <= 0.45, "{model}: {honest}");
    }
    let losses = |workers: usize| {
        let mut config = config(&format!("{workers}"), "rgcn", Some(TimeRule::Uniform));
        config.sample.fanouts = vec![2];
        config.train.epochs = 3;
        config.train.workers = workers;
        train(&config).summary.losses
    };
    let (one, three) = (losses(1), losses(3));
    assert!(one.iter().zip(&three).all(|(a, b)| (a - b).abs() < 1e-5), "{one:?} {three:?}");
}

#[test]
fn workers_change_no_loss_and_averages_of_parts_read_no_future() {
    let bench = Bench::new();
    bench.homogeneous(true);
    let losses = |workers: usize| {
        let mut config = bench.config(&format!("{workers}"), Some(TimeRule::Uniform));
        config.sample.fanouts = vec![2, 2];
        config.model.layers = 2;
        config.train.epochs = 3;
        config.train.workers = workers;
        train(&config).summary
    };
    let (one, three) = (losses(1), losses(3));
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
    assert!(one.losses.iter().zip(&three.losses).all(near), "{one:?} {three:?}");
    assert_eq!((&one.test, &one.valid), (&three.test, &three.valid));
    let mut config = bench.config("average", Some(TimeRule::Last));
    config.train.strategy = Strategy::Average;
    config.partition.parts = Parts::Count(2);
    config.train.workers = 2;
    let honest = accuracy(&config);
    assert!(honest <= 0.45, "{honest}");
}

#[test]
fn embeddings_are_those_of_evaluation_and_of_no_time_in_particular_refused() {
    let bench = Bench::new();
    bench.homogeneous(false);
    let mut config = bench.config("run", Some(TimeRule::Last));
    config.sample.fanouts = vec![1];
    train(&config);
    let open =
        |dir: &Path| TrainedRun::open(&Registry::default(), dir, &OpenOptions::default()).unwrap();
    let run = open(&config.output.dir);
    let nodes: Vec<u32> = run.split("test").unwrap().to_vec();
    let mut right = 0;
    let labels = Facts::new(false).labels;
    run.infer(Output::Last, &[(0, nodes.clone())], &mut |_, nodes, rows| {
        for (row, &node) in nodes.iter().enumerate() {
            let row = rows.row(row);
            let best = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
            right += usize::from(best as i32 == labels[node as usize - OLD as usize]);
        }
        Ok(())
    })
    .unwrap();
    assert!(right as f64 >= 0.99 * nodes.len() as f64, "{right} of {}", nodes.len());
    let hidden = run.infer(Output::Hidden, &[(0, nodes)], &mut |_, _, _| Ok(()));
    let text = format!("{:?}", hidden.unwrap_err());
    assert!(text.contains("no time in particular"), "{text}");
}

#[test]
fn what_has_no_times_is_refused() {
    let bench = Bench::new();
    bench.homogeneous(true);
    let config = |change: &dyn Fn(&mut RunConfig)| {
        let mut config = bench.config("refused", Some(TimeRule::Last));
        change(&mut config);
        refused(&config)
    };
    let text = config(&|config| config.train.strategy = Strategy::Tensor);
    assert!(text.contains("takes all edges at once"), "{text}");
    let text = config(&|config| config.sample.method = Method::Labor);
    assert!(text.contains("'neighbor', 'exact' or 'full'"), "{text}");
    let options = gnarl_graph::generate::CommunityOptions {
        nodes: 100,
        communities: 2,
        ..Default::default()
    };
    gnarl_graph::generate::community(&options, &bench.path("plain")).unwrap();
    let plain = bench.path("plain");
    let text = config(&|config| config.dataset.path.clone_from(&plain));
    assert!(text.contains("nodes have no times") && text.contains("--node-time"), "{text}");
}
