//! Runs that end before their last epoch: what diverges ends with an error on all ranks, and the best
//! weights so far are there to be judged.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gnarl_common::npy::NpyWriter;
use gnarl_config::RunConfig;
use gnarl_config::{Method, Parts, RandomSplit, Strategy, TaskKind};
use gnarl_graph::generate::{CommunityOptions, HeteroOptions, community, heterogeneous};
use gnarl_graph::import::{NpyOptions, npy};
use gnarl_train::{Begin, EpochRecord, eval_run, run};

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        let options = CommunityOptions { nodes: 300, communities: 4, ..Default::default() };
        community(&options, &bench.path("plain")).unwrap();
        let options = HeteroOptions { nodes: 800, edges: 6000, ..Default::default() };
        heterogeneous(&options, &bench.path("typed")).unwrap();
        bench.labelled_edges();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A ring with chords, whose edges have classes.
    fn labelled_edges(&self) {
        let (nodes, edges) = (60u32, 240u32);
        let heads = (0..edges).map(|e| e % nodes);
        let ends: Vec<u32> = heads.chain((0..edges).map(|e| (e + 1 + e / nodes) % nodes)).collect();
        let mut options = NpyOptions::new(array(&self.path("edges.npy"), &[edges.into()], &ends));
        let classes: Vec<i32> = (0..edges as i32).map(|e| e % 3).collect();
        options.edge_labels = Some(array(&self.path("classes.npy"), &[], &classes));
        let values: Vec<f32> = (0..nodes).map(|v| v as f32 / 60.0).collect();
        options.features = Some(array(&self.path("features.npy"), &[1], &values));
        npy(&options, &self.path("edges")).unwrap();
    }

    fn config(&self, dataset: &str, name: &str) -> RunConfig {
        let mut config = RunConfig::default();
        config.dataset.path = self.path(dataset);
        config.model.hidden = 16;
        config.model.dropout = 0.0;
        config.embedding.dim = 8;
        config.decoder.hidden = 8;
        config.negatives.count = 8;
        config.sample.fanouts = vec![4, 4];
        config.sample.batch_size = 64;
        config.train.epochs = 30;
        config.train.threads = 2;
        config.train.deadline_seconds = 60.0;
        config.output.dir = self.path("runs").join(name);
        match dataset {
            "typed" => {
                config.model.name = "rgcn".into();
                config.task.node_type = Some("paper".into());
            }
            "edges" => {
                config.task.kind = TaskKind::EdgeClassification;
                let split = RandomSplit { train: 0.6, valid: 0.2, test: 0.2, seed: 0 };
                config.dataset.split = Some(split);
            }
            _ => {}
        }
        config
    }
}

fn array<T: gnarl_common::Element>(path: &Path, row: &[u64], values: &[T]) -> PathBuf {
    let mut writer = NpyWriter::create(path, row).unwrap();
    writer.push(values).unwrap();
    writer.finish().unwrap();
    path.into()
}

/// What a case changes in a run.
type Change = fn(&mut RunConfig);

/// Each strategy, execution and task.
const CASES: [(&str, &str, Change); 12] = [
    ("gradient", "plain", |_| ()),
    ("gradient-3", "plain", |c| c.train.workers = 3),
    ("average", "plain", |c| {
        c.train.strategy = Strategy::Average;
        c.train.workers = 2;
        c.train.sync_every = 2;
        c.partition.parts = Parts::Count(3);
    }),
    ("tensor", "plain", |c| {
        c.train.strategy = Strategy::Tensor;
        c.train.workers = 2;
    }),
    ("chunks", "plain", |c| {
        c.train.strategy = Strategy::Tensor;
        c.tensor.chunks = 3;
        c.train.workers = 2;
    }),
    ("typed", "typed", |c| c.train.workers = 2),
    ("typed-average", "typed", |c| {
        c.train.strategy = Strategy::Average;
        c.train.workers = 2;
        c.partition.parts = Parts::Count(2);
    }),
    ("typed-tensor", "typed", |c| {
        c.train.strategy = Strategy::Tensor;
        c.train.workers = 2;
    }),
    ("embeddings", "plain", |c| {
        c.task.kind = TaskKind::LinkPrediction;
        c.model.name = "none".into();
        c.train.workers = 2;
    }),
    ("links", "plain", |c| {
        c.task.kind = TaskKind::LinkPrediction;
        c.train.workers = 2;
    }),
    ("links-tensor", "plain", |c| {
        c.task.kind = TaskKind::LinkPrediction;
        c.train.strategy = Strategy::Tensor;
        c.train.workers = 2;
    }),
    ("edges", "edges", |c| c.train.workers = 2),
];

#[test]
fn every_strategy_and_task_says_that_it_diverged() {
    let bench = Bench::new();
    for (name, dataset, change) in CASES {
        let mut config = bench.config(dataset, name);
        change(&mut config);
        config.train.lr = 1e20;
        config.check().unwrap();
        let Err(error) = run(&config, Begin::Restart, &|_| ()) else {
            panic!("{name}: nothing is told");
        };
        assert_eq!(error.exit_code(), 1, "{name}");
        let text = error.to_string();
        let told = text.contains(" is NaN in epoch ") || text.contains(" is infinite in epoch ");
        assert!(told && !text.contains("sent no"), "{name}: {text}");
        let hint = "lower train.lr (now 1e20) or set train.clip_norm; ";
        assert!(text.contains(hint), "{name}: {text}");
        assert!(!config.output.dir.join("summary.json").exists(), "{name}");
    }
}

/// A run whose weights grow by a factor in each step, until they overflow.
fn growing(bench: &Bench, dataset: &str, name: &str) -> RunConfig {
    let mut config = bench.config(dataset, name);
    config.optimizer.name = "sgd".into();
    config.optimizer.weight_decay = 1000.0;
    config.train.lr = 1.0;
    config.sample.method = Method::Full;
    config.sample.batch_size = 0;
    config
}

#[test]
fn the_best_weights_of_a_diverged_run_are_kept() {
    let bench = Bench::new();
    for (dataset, workers) in [("plain", 1), ("typed", 3)] {
        let mut config = growing(&bench, dataset, dataset);
        config.train.workers = workers;
        // Not in time for any checkpoint.
        config.train.checkpoint_seconds = 1e6;
        let seen = Mutex::new(Vec::<EpochRecord>::new());
        let watch = |record: &EpochRecord| seen.lock().unwrap().push(record.clone());
        let text = run(&config, Begin::Restart, &watch).err().unwrap().to_string();
        let seen = seen.into_inner().unwrap();
        let last = seen.last().unwrap();
        let before = format!(" in epoch {} (loss ", last.epoch + 1);
        assert!(text.contains(&before), "{dataset}: {text}");
        let best = text.split("(epoch ").nth(1).and_then(|rest| rest.split(',').next());
        let best: usize = best.unwrap().parse().unwrap();
        assert!(text.contains("model.safetensors"), "{dataset}: {text}");
        let judged = eval_run(&config.output.dir, None).unwrap();
        let record = &seen[best - 1];
        assert_eq!((&judged.valid, &judged.test), (&record.valid, &record.test), "{dataset}");
    }
}

#[test]
fn the_best_weights_are_there_while_a_run_lasts() {
    let bench = Bench::new();
    let mut config = bench.config("typed", "lasting");
    config.train.workers = 2;
    config.train.epochs = 5;
    config.train.checkpoint_seconds = 0.0;
    let best = Mutex::new(None::<EpochRecord>);
    let watch = |record: &EpochRecord| {
        let mut best = best.lock().unwrap();
        if let Some(best) = &*best {
            let judged = eval_run(&config.output.dir, None).unwrap();
            assert_eq!(judged.valid, best.valid, "after epoch {}", record.epoch - 1);
        }
        let score = |record: &EpochRecord| record.valid["accuracy"];
        if best.as_ref().is_none_or(|best| score(record) > score(best)) {
            *best = Some(record.clone());
        }
    };
    run(&config, Begin::Restart, &watch).unwrap();
    let bytes = std::fs::read(config.output.dir.join("model.safetensors")).unwrap();
    let (_, metadata) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let about: serde_json::Value =
        serde_json::from_str(&metadata.metadata().as_ref().unwrap()["gnarl"]).unwrap();
    assert_eq!(about["model"], "rgcn");
    assert_eq!(about["task"], "node-classification");
    assert_eq!(about["normalize"], "none");
    assert!(about["classes"].as_u64() > Some(1) && about["dataset"].is_string(), "{about}");
    let kept = best.into_inner().unwrap().unwrap();
    assert_eq!(about["valid"], serde_json::to_value(kept.valid).unwrap());
}
