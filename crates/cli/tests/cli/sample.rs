//! `gnarl sample`, and training on what it makes.

use std::process::Command;

use serde_json::Value;

use crate::common::{Bench, fail, path, results, succeed};

const TRAIN: &str = "[train]\nepochs = 3\nworkers = 2\n";

#[test]
fn batches_are_written_once_and_trained_on() {
    let bench = Bench::new(TRAIN);
    let out = bench.dir.path().join("batches");
    let sample = ["sample", path(&bench.file), "--epochs", "3", "--out", path(&out)];
    let made = succeed(&sample);
    assert_eq!((&made["epochs"], &made["workers"]), (&Value::from(3), &Value::from(2)), "{made}");
    assert!(made["bytes"].as_u64() > Some(0) && made["batches"].as_u64() > Some(0), "{made}");
    let expected = results(&bench.train(&[]));
    let from = format!("sample.batches={}", out.display());
    let found = bench.train(&["sample.source=batches", &from]);
    assert_eq!(results(&found), expected);

    let err = fail(&sample, 2);
    assert!(err.contains("--force"), "{err}");
    assert_eq!(succeed(&[&sample[..], &["--force"]].concat())["bytes"], made["bytes"]);
    let err = fail(&["sample", path(&bench.file), "--epochs", "0", "--out", path(&out)], 2);
    assert!(err.contains("--epochs"), "{err}");
}

/// Needs a Python with `pyarrow`, named by `GNARL_PYTHON`.
#[test]
fn pyarrow_reads_prepared_batches() {
    let Ok(python) = std::env::var("GNARL_PYTHON") else {
        eprintln!("skipped: GNARL_PYTHON does not name a Python with pyarrow");
        return;
    };
    let bench = Bench::new(TRAIN);
    let out = bench.dir.path().join("batches");
    let made = succeed(&["sample", path(&bench.file), "--epochs", "2", "--out", path(&out)]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/sample_reader.py");
    let read = Command::new(python).args([script, path(&out)]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let found: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(found["files"], 4);
    assert_eq!((&found["batches"], &found["examples"]), (&made["batches"], &made["examples"]));
}
