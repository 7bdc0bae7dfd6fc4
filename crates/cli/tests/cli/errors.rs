//! Bad input: a clear error that names the place, the right exit code, nothing half-written.

use crate::common::{community, fail, path, run_file, succeed};

#[test]
fn usage_errors_exit_with_2() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let file = run_file(dir.path(), &graph, "");
    let out = format!("output.dir={}", dir.path().join("run").display());
    let train = |set: &str| fail(&["train", path(&file), "--set", &out, "--set", set], 2);
    for (set, expected) in [
        ("train.epoch=3", "did you mean 'train.epochs'?"),
        ("modle.name=gcn", "did you mean 'model'?"),
        ("model.name=graphsage", "sage"),
        ("train.workers=0", "train.workers"),
        ("partition.algorithm=mettis", "metis"),
        ("sample.fanouts=[5]", "sample.fanouts"),
        ("train.metric=acc", "accuracy"),
        ("train.lr=fast", "lr"),
    ] {
        let set = if set.starts_with("partition") {
            fail(
                &["train", path(&file), "--set", &out, "--set", set, "--set", "partition.parts=2"],
                2,
            )
        } else {
            train(set)
        };
        assert!(set.contains(expected), "expected '{expected}' in: {set}");
    }
    fail(&["frobnicate"], 2);
    fail(&["partition", path(&graph)], 2);
}

#[test]
fn more_parts_than_nodes_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let out = dir.path().join("parts");
    let text = fail(&["partition", path(&graph), "--parts", "5000", "--out", path(&out)], 2);
    assert!(text.contains("5000 parts"), "{text}");
    assert!(!out.exists());
}

#[test]
fn missing_and_damaged_datasets_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = fail(&["inspect", path(&dir.path().join("nowhere"))], 1);
    assert!(text.contains("nowhere") && text.contains("hint:"), "{text}");
    let graph = community(dir.path());
    let column = graph.join("_N.features.npy");
    let length = std::fs::metadata(&column).unwrap().len();
    std::fs::File::options().write(true).open(&column).unwrap().set_len(length - 100).unwrap();
    let file = run_file(dir.path(), &graph, "[train]\nepochs = 1\n");
    let out = format!("output.dir={}", dir.path().join("run").display());
    let text = fail(&["train", path(&file), "--set", &out], 1);
    assert!(text.contains("_N.features.npy") && text.contains("truncated"), "{text}");
}

#[test]
fn flipped_bits_are_found_by_verify() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    succeed(&["inspect", path(&graph), "--verify"]);
    let column = graph.join("_N.label.npy");
    let mut bytes = std::fs::read(&column).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&column, bytes).unwrap();
    let text = fail(&["inspect", path(&graph), "--verify"], 1);
    assert!(text.contains("_N.label.npy") && text.contains("checksum"), "{text}");
}

#[test]
fn unwritable_output_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let blocked = dir.path().join("file");
    std::fs::write(&blocked, "not a folder").unwrap();
    let out = blocked.join("graph");
    let text =
        fail(&["generate", "rmat", "--nodes", "10", "--edges", "20", "--out", path(&out)], 1);
    assert!(text.contains("file"), "{text}");
    let graph = community(dir.path());
    let file = run_file(dir.path(), &graph, "");
    let set = format!("output.dir={}", out.display());
    let text = fail(&["train", path(&file), "--set", &set], 1);
    assert!(text.contains("file"), "{text}");
}

#[test]
fn a_full_disk_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("big");
    // A limit on file size stands in for the full disk: writes fail with an error either way.
    let script = format!(
        "trap '' XFSZ; ulimit -f 64; exec {} generate rmat --nodes 100000 --edges 1000000 --out {}",
        env!("CARGO_BIN_EXE_gnarl"),
        out.display()
    );
    let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("big") && text.contains("hint") | text.contains("os error"), "{text}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "something was left behind");
}
