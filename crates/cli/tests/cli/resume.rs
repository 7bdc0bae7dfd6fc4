//! Runs that are killed and go on.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{Bench, fail, gnarl, path, results, succeed};
use serde_json::Value;

const RUN: &str = "[train]\nepochs = 40\nworkers = 2\ncheckpoint_seconds = 0\n";

/// Kills the run ten times after delays spread over its length, resuming each time.
fn killed_ten_times(file: &Path, out: &str, length: Duration) -> Value {
    for kill in 0..10u32 {
        let mut child = gnarl()
            .args([
                "train",
                path(file),
                "--set",
                out,
                if kill == 0 { "--restart" } else { "--resume" },
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        // 7 and 11 are coprime: the delays differ and fall anywhere in an epoch.
        std::thread::sleep(length * (1 + kill * 7 % 11) / 22);
        child.kill().expect("the child can be killed");
        child.wait().expect("the child ends");
    }
    succeed(&["train", path(file), "--set", out, "--resume"])
}

fn ends_the_same(extra: &str) {
    let bench = Bench::new(&format!("{RUN}{extra}"));
    let dir = bench.dir.path();
    let killed = format!("output.dir={}", dir.join("killed").display());
    let start = std::time::Instant::now();
    let expected = bench.train(&[]);
    let summary = killed_ten_times(&bench.file, &killed, start.elapsed());
    assert_eq!(results(&summary), results(&expected));
    let lines = std::fs::read_to_string(dir.join("killed/metrics.jsonl")).unwrap();
    let epochs: Vec<u64> = lines
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap()["epoch"].as_u64().unwrap())
        .collect();
    assert_eq!(epochs, (1..=40).collect::<Vec<_>>(), "one line an epoch, none twice");
}

#[test]
fn gradient_runs_killed_ten_times_end_with_the_same_numbers() {
    ends_the_same("");
}

#[test]
fn average_runs_killed_ten_times_end_with_the_same_numbers() {
    ends_the_same("strategy = 'average'\nsync_every = 3\n[partition]\nparts = 3\n");
}

#[test]
fn an_unfinished_run_is_not_overwritten_and_another_run_not_resumed() {
    let bench = Bench::new(RUN);
    bench.train(&["train.epochs=3"]);
    std::fs::remove_file(bench.run.join("summary.json")).unwrap();
    let text = fail(&bench.args(&[]), 2);
    assert!(text.contains("unfinished run") && text.contains("--resume"), "{text}");
    let other = [bench.args(&["model.hidden=8"]), vec!["--resume"]].concat();
    let text = fail(&other, 2);
    assert!(text.contains("model.hidden") || text.contains("train.epochs"), "{text}");
}
