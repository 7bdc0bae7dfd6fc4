//! A run that ends in an evaluation: the epoch before it is not trained again.

use std::process::{Output, Stdio};

use crate::common::{Bench, gnarl, results};
use serde_json::Value;

/// A run with a checkpoint whenever there can be one.
fn bench(train: &str) -> Bench {
    Bench::new(&format!("[train]\nepochs = 6\ncheckpoint_seconds = 0\n{train}"))
}

fn run(bench: &Bench, more: &[&str], faults: Option<&str>) -> Output {
    let mut command = gnarl();
    command.args(bench.args(&[])).arg("-v").args(more);
    if let Some(faults) = faults {
        command.env("FAILPOINTS", faults);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The records of all epochs, without times.
fn records(bench: &Bench) -> Vec<Value> {
    let lines = std::fs::read_to_string(bench.run.join("metrics.jsonl")).unwrap();
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let timeless = |record: Value| {
        let fields = ["epoch", "loss", "lr", "valid", "test", "sampled_edges", "seeds"];
        fields.iter().map(|&field| record[field].clone()).collect()
    };
    records.map(timeless).collect()
}

/// Kills a run of two workers in its second evaluation, which ends epoch `epoch` of 6, and goes on.
///
/// The worker that comes to the evaluation last is killed: both are past the checkpoint then.
fn goes_on_with_the_evaluation(train: &str, epoch: usize) {
    let bench = bench(&format!("workers = 2\n{train}"));
    let expected = results(&bench.train(&[]));
    let whole = records(&bench);
    let killed = run(&bench, &["--restart"], Some("evaluate=3*off->return"));
    assert!(!killed.status.success());
    let evaluated = records(&bench).len();
    assert!(evaluated < epoch, "{evaluated}");
    let resumed = run(&bench, &["--resume"], None);
    let err = text(&resumed.stderr);
    let from = format!("resuming after epoch {epoch} of 6, with its evaluation");
    assert!(resumed.status.success() && err.contains(&from), "{err}");
    let summary: Value = serde_json::from_slice(&resumed.stdout).unwrap();
    assert_eq!(results(&summary), expected);
    assert_eq!(records(&bench), whole);
}

#[test]
fn gradient_goes_on_with_the_evaluation() {
    goes_on_with_the_evaluation("", 2);
}

#[test]
fn average_goes_on_with_the_evaluation_of_several_epochs() {
    let train = "strategy = 'average'\nsync_every = 3\n[partition]\nparts = 3\n";
    goes_on_with_the_evaluation(train, 6);
}

#[test]
fn tensor_goes_on_with_the_evaluation() {
    goes_on_with_the_evaluation("strategy = 'tensor'\n", 2);
}

#[test]
fn a_kill_in_the_evaluation_that_patience_would_end_the_run_by() {
    let bench = bench("patience = 1\nlr = 1e-30\n");
    let expected = results(&bench.train(&[]));
    let whole = records(&bench);
    assert_eq!(whole.len(), 2, "the second evaluation is no better");
    run(&bench, &["--restart"], Some("evaluate=1*off->return"));
    assert_eq!(records(&bench).len(), 1);
    let resumed = run(&bench, &["--resume"], None);
    let summary: Value = serde_json::from_slice(&resumed.stdout).unwrap();
    assert_eq!(results(&summary), expected);
    assert_eq!(records(&bench), whole);
}

#[test]
fn a_stop_does_not_wait_for_the_evaluation() {
    let bench = bench("");
    let expected = results(&bench.train(&[]));
    // An epoch, of ten batches, takes a second; the signal comes within the second one.
    let mut command = gnarl();
    command.args(bench.args(&[])).arg("--restart").env("FAILPOINTS", "compute=sleep(100)");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let records = || std::fs::read_to_string(bench.run.join("metrics.jsonl")).unwrap_or_default();
    while records().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let stopped = child.wait_with_output().unwrap();
    let err = text(&stopped.stderr);
    assert_eq!(stopped.status.code(), Some(143), "{err}");
    assert!(err.contains("of 6, before its evaluation, as asked"), "{err}");
    let resumed = run(&bench, &["--resume"], None);
    let summary: Value = serde_json::from_slice(&resumed.stdout).unwrap();
    assert_eq!(results(&summary), expected, "{}", text(&resumed.stderr));
}

#[test]
fn an_evaluation_before_a_checkpoint_is_due_has_none_before_it() {
    let bench = Bench::new("[train]\nepochs = 3\ncheckpoint_seconds = 1000\n");
    let killed = run(&bench, &["--restart"], Some("evaluate=1*off->return"));
    assert!(!killed.status.success());
    assert!(!bench.run.join("checkpoint.safetensors").exists());
}
