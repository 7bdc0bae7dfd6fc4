//! Folders of datasets and runs.

use std::path::PathBuf;

use gnarl_common::npy::NpyWriter;
use gnarl_config::RunConfig;
use gnarl_train::{Begin, Finished, eval_run, run};

pub struct Bench(tempfile::TempDir);

impl Bench {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn array<T: gnarl_common::Element>(
        &self,
        name: &str,
        row: &[u64],
        values: &[T],
    ) -> PathBuf {
        let mut writer = NpyWriter::create(self.path(name), row).unwrap();
        writer.push(values).unwrap();
        writer.finish().unwrap();
        self.path(name)
    }

    pub fn booleans(&self, name: &str, values: &[bool]) -> PathBuf {
        let shape = values.len();
        let header = format!("{{'descr': '|b1', 'fortran_order': False, 'shape': ({shape},), }}");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&(header.len() as u16 + 1).to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes.push(b'\n');
        bytes.extend(values.iter().map(|&value| u8::from(value)));
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }
}

pub fn train(config: &RunConfig) -> Finished {
    run(config, Begin::Restart, &|_| ()).unwrap()
}

/// The test score of a run, which `gnarl eval` finds again.
pub fn score(config: &RunConfig, metric: &str) -> f64 {
    let finished = train(config);
    let found = finished.summary.test[metric];
    let again = eval_run(&config.output.dir, None).unwrap();
    assert_eq!(again.test[metric], found, "evaluated once more");
    found
}

pub fn refused(config: &RunConfig) -> String {
    format!("{:?}", run(config, Begin::Restart, &|_| ()).map(|_| ()).unwrap_err())
}
