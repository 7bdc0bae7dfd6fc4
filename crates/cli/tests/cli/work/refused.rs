//! Workers that do not fit the run.

use super::{Started, Stored};
use crate::common::{fail, gnarl, path};

#[test]
fn a_worker_of_another_run_is_told_what_differs() {
    let stored = Stored::new();
    let run = stored.start(1, &[]);
    for (set, what) in [
        ("sample.fanouts=[5, 4]", "sample.fanouts = [5, 4]"),
        ("train.seed=7", "train.seed = 7"),
        ("disaggregated.resident=3", "resident = 3"),
    ] {
        let output = stored.worker(&run.uri, &[set]).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains(what) && err.contains("the same run file"), "{set}: {err}");
    }
    // What batches do not depend on may differ.
    let sets = ["train.lr=0.5", "train.epochs=9", "model.hidden=8", "train.threads=1"];
    let worker = Started::new(&mut stored.worker(&run.uri, &sets), "prepares batches for ");
    run.succeeds();
    worker.succeeds();
}

#[test]
fn a_worker_without_a_coordinator_ends_at_the_deadline() {
    let stored = Stored::new();
    let output =
        stored.worker("http://127.0.0.1:9", &["train.deadline_seconds=1"]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("no reply from http://127.0.0.1:9 within 1 s"), "{err}");
}

#[test]
fn roles_and_settings_that_do_not_fit_are_refused() {
    let stored = Stored::new();
    let file = path(&stored.bench.file);
    let set = stored.place.as_str();
    let text = fail(&["work", file, "--role", "batch", "--set", set], 2);
    assert!(text.contains("requires --join"), "{text}");
    let coordinator = ["work", file, "--role", "coordinator", "--set", set];
    let text = fail(&[&coordinator[..], &["--join", "http://a:1"]].concat(), 2);
    assert!(text.contains("--join is for batch workers"), "{text}");
    let text = fail(&[&coordinator[..], &["--listen", "0.0.0.0:0"]].concat(), 2);
    assert!(text.contains("requires a token and a certificate"), "{text}");
    let batch = ["work", file, "--role", "batch", "--join", "http://127.0.0.1:9"];
    let text = fail(&batch, 2);
    assert!(text.contains("partition.path is not set"), "{text}");
    let text = fail(&[&batch[..], &["--set", "train.strategy=gradient"]].concat(), 2);
    assert!(text.contains("train.strategy to 'disaggregated'"), "{text}");
    let run = |sets: &[&str]| fail(&stored.bench.args(sets), 2);
    let text = run(&["disaggregated.batch_workers=2"]);
    assert!(text.contains("requires partition.path"), "{text}");
    let text = run(&[set, "disaggregated.join=http://a:1"]);
    assert!(text.contains("requires disaggregated.batch_workers"), "{text}");
    let sets = [set, "disaggregated.batch_workers=1", "cache.memory=1MiB", "cache.policy=fixed"];
    let text = run(&sets);
    assert!(text.contains("cache.policy = 'fixed' chooses its nodes by the graph"), "{text}");
    let public = "disaggregated.listen=0.0.0.0:0";
    let text = run(&[set, "disaggregated.batch_workers=1", public]);
    assert!(text.contains("requires a token and a certificate"), "{text}");
}

#[test]
fn workers_bear_the_token_of_the_run() {
    let stored = Stored::new();
    let token = stored.bench.dir.path().join("token");
    std::fs::write(&token, "0123abcd\n").unwrap();
    let bearing = format!("disaggregated.token_file={}", token.display());
    let run = stored.start(1, &[&bearing]);
    let output = stored.worker(&run.uri, &[]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("no token was given"), "{err}");
    let mut worker = gnarl();
    worker.args(["work", path(&stored.bench.file), "--role", "batch", "--join", &run.uri]);
    worker.args(["--token-file", path(&token), "--set", &stored.place]);
    let worker = Started::new(&mut worker, "prepares batches for ");
    run.succeeds();
    worker.succeeds();
}
