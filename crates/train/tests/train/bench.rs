//! A small community graph in a folder of its own, and runs on it.

use std::path::PathBuf;

use gnarl_config::RunConfig;
use gnarl_graph::generate::{CommunityOptions, community};

/// A folder with the graph `graph`: 600 nodes in four communities.
pub(crate) struct Bench(tempfile::TempDir);

impl Bench {
    pub fn new() -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        let options = CommunityOptions { nodes: 600, communities: 4, ..Default::default() };
        community(&options, &bench.path("graph")).unwrap();
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Three epochs of GraphSAGE by one worker, in the folder `name`.
    pub fn config(&self, name: &str) -> RunConfig {
        let mut config = RunConfig::default();
        config.dataset.path = self.path("graph");
        config.model.hidden = 16;
        config.sample.fanouts = vec![5, 5];
        config.sample.batch_size = 64;
        config.train.epochs = 3;
        config.train.threads = 2;
        config.train.deadline_seconds = 60.0;
        config.output.dir = self.path(name);
        config
    }
}
