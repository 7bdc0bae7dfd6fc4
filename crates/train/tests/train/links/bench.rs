//! A small knowledge graph, and runs on it.

use std::path::PathBuf;

use gnarl_common::rng::Key;
use gnarl_config::{RunConfig, TaskKind};
use gnarl_graph::import::{TriplesOptions, triples};
use gnarl_train::{Begin, Finished, run};

pub struct Bench {
    pub dir: tempfile::TempDir,
}

impl Bench {
    /// 60 entities on a ring, and 5 relations that lead some steps on: what holds can be learned.
    pub fn new() -> Self {
        let bench = Self { dir: tempfile::tempdir().unwrap() };
        let mut files = [const { String::new() }; 3];
        for head in 0..60u64 {
            for relation in 0..5u64 {
                let tail = (head + 2 * relation + 1) % 60;
                let split = [0, 0, 0, 0, 1, 2][Key::new(head).below(relation, 6) as usize];
                files[split] += &format!("e{head}\tr{relation}\te{tail}\n");
            }
        }
        for (name, text) in ["train", "valid", "test"].iter().zip(files) {
            std::fs::write(bench.path(name), text).unwrap();
        }
        bench.import("train", "graph");
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn import(&self, train: &str, out: &str) {
        let options = TriplesOptions {
            train: self.path(train),
            valid: Some(self.path("valid")).filter(|path| path.exists()),
            test: Some(self.path("test")).filter(|path| path.exists()),
            num_entities: None,
            entities: None,
            relations: None,
            delimiter: None,
            memory: 1 << 26,
        };
        triples(&options, &self.path(out)).unwrap();
    }

    pub fn config(&self, name: &str) -> RunConfig {
        let mut config = RunConfig::default();
        config.dataset.path = self.path("graph");
        config.task.kind = TaskKind::LinkPrediction;
        config.model.name = "none".into();
        config.embedding.dim = 16;
        config.negatives.count = 20;
        config.sample.batch_size = 64;
        config.train.epochs = 4;
        config.train.lr = 0.05;
        config.train.threads = 2;
        config.train.deadline_seconds = 60.0;
        config.output.dir = self.path(name);
        config
    }
}

/// Trains from the start.
pub fn train(config: &RunConfig) -> Finished {
    config.check().unwrap();
    run(config, Begin::Restart, &|_| ()).unwrap()
}

/// The rows and weights a run wrote.
pub fn model(config: &RunConfig) -> Vec<f32> {
    let bytes = std::fs::read(config.output.dir.join("model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors = file.tensors();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let floats = |bytes: &[u8]| -> Vec<f32> {
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    assert!(tensors.iter().any(|(name, _)| name == "entity"), "rows of entities are saved");
    tensors.iter().flat_map(|(_, tensor)| floats(tensor.data())).collect()
}
