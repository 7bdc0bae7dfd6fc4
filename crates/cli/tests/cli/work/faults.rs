//! Batch workers that are killed, that hang, and that join in the middle.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Started, Stored, workers};
use crate::common::{gnarl, path, results};

/// Epochs that take a while, for workers to come and go.
const LONG: [&str; 2] = ["train.epochs=60", "train.eval_every=20"];

/// Waits until the run has trained so many epochs.
fn trained(stored: &Stored, epochs: usize) {
    let file = stored.bench.run.join("metrics.jsonl");
    let start = Instant::now();
    let lines = || std::fs::read_to_string(&file).unwrap_or_default().lines().count();
    while lines() < epochs {
        assert!(start.elapsed() < Duration::from_secs(60), "{epochs} epochs take too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn workers_come_and_go_and_the_numbers_stay() {
    let stored = Stored::new();
    let expected = results(&stored.alone(&LONG));
    let run = stored.start(2, &LONG);
    let uri = run.uri.clone();
    let mut first = workers(&stored, &uri, 2);
    trained(&stored, 3);
    let mut later = workers(&stored, &uri, 1);
    trained(&stored, 6);
    first[0].kill();
    trained(&stored, 9);
    first[1].kill();
    trained(&stored, 12);
    later.extend(workers(&stored, &uri, 1));
    let (found, err) = run.succeeds();
    assert_eq!(results(&found), expected, "{err}");
    assert!(err.contains("asked of other workers"), "{err}");
    later.into_iter().for_each(|worker| drop(worker.succeeds()));
}

/// While all have gone, the run waits; the next one goes on where they were.
#[test]
fn a_run_waits_for_a_worker_when_all_are_gone() {
    let stored = Stored::new();
    let expected = results(&stored.alone(&LONG));
    let run = stored.start(1, &LONG);
    let mut first = workers(&stored, &run.uri, 1);
    trained(&stored, 3);
    first[0].kill();
    std::thread::sleep(Duration::from_millis(500));
    let second = workers(&stored, &run.uri, 1);
    let (found, err) = run.succeeds();
    assert_eq!(results(&found), expected, "{err}");
    second.into_iter().for_each(|worker| drop(worker.succeeds()));
}

#[cfg(unix)]
#[test]
fn a_worker_that_hangs_is_replaced() {
    let stored = Stored::new();
    let expected = results(&stored.alone(&LONG));
    let run = stored.start(2, &LONG);
    let both = workers(&stored, &run.uri, 2);
    trained(&stored, 3);
    let signal = |name: &str| {
        let id = both[0].child.id().to_string();
        assert!(std::process::Command::new("kill").args([name, &id]).status().unwrap().success());
    };
    signal("-STOP");
    let (found, err) = run.succeeds();
    assert_eq!(results(&found), expected, "{err}");
    signal("-CONT");
}

#[test]
fn a_run_without_workers_says_how_to_start_them() {
    let stored = Stored::new();
    let run = stored.start(2, &["train.deadline_seconds=1"]);
    let (code, _, err) = run.end();
    assert_eq!(code, Some(1));
    assert!(err.contains("0 of 2 have joined") && err.contains("gnarl work --role batch"), "{err}");
}

#[test]
fn workers_that_are_all_gone_for_good_end_the_run() {
    let stored = Stored::new();
    let run = stored.start(1, &[&LONG[..], &["train.deadline_seconds=3"]].concat());
    let mut first = workers(&stored, &run.uri, 1);
    trained(&stored, 3);
    first[0].kill();
    let (code, _, err) = run.end();
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("no batch workers within 3 s") && err.contains("error"), "{err}");
}

/// A copy of the parts, as on another host.
fn copied(stored: &Stored) -> PathBuf {
    let whole = stored.bench.dir.path().join("whole");
    let copied = std::process::Command::new("cp").arg("-r").arg(&stored.parts).arg(&whole).status();
    assert!(copied.unwrap().success());
    whole
}

/// A batch worker that reads the parts there.
fn reading(stored: &Stored, uri: &str, parts: &Path) -> Started {
    let place = format!("partition.path={}", parts.display());
    let mut worker = gnarl();
    worker.args(["work", path(&stored.bench.file), "--role", "batch", "--join", uri]);
    Started::new(worker.args(["--set", &place]), "prepares batches for ")
}

/// A part that is damaged on one host is read on another one.
#[test]
fn a_damaged_part_ends_its_worker_and_not_the_run() {
    let stored = Stored::new();
    let expected = results(&stored.alone(&[]));
    let whole = copied(&stored);
    let run = stored.start(2, &[]);
    let damaged = workers(&stored, &run.uri, 1).remove(0);
    let file = stored.parts.join("part-3/_N.features.npy");
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let sound = reading(&stored, &run.uri, &whole);
    let (found, err) = run.succeeds();
    assert_eq!(results(&found), expected, "{err}");
    let (code, _, err) = damaged.end();
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("part 3") && err.contains("_N.features.npy"), "{err}");
    sound.succeeds();
}

/// A file that is written to in place while a worker has it open, long after it was compared, ends that worker by its name.
#[test]
fn a_part_that_changes_under_a_worker_ends_it_and_not_the_run() {
    let stored = Stored::new();
    let whole = copied(&stored);
    let run = stored.start(2, &LONG);
    let changing = reading(&stored, &run.uri, &whole);
    let sound = workers(&stored, &run.uri, 1).remove(0);
    trained(&stored, 3);
    let file = whole.join("part-3/_N.features.npy");
    let last = std::fs::read(&file).unwrap().pop().unwrap();
    let mut open = File::options().write(true).open(&file).unwrap();
    open.seek(SeekFrom::End(-1)).unwrap();
    open.write_all(&[last ^ 1]).unwrap();
    let (code, _, err) = changing.end();
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains(path(&file)) && !err.contains("panicked"), "{err}");
    run.succeeds();
    sound.succeeds();
}

/// Stages of a batch worker, and how often it gets through before it is killed.
#[cfg(feature = "faults")]
const DEATHS: [(&str, usize); 10] = [
    ("load", 1),
    ("load", 4),
    ("load", 20),
    ("sample", 0),
    ("sample", 15),
    ("fetch", 3),
    ("fetch", 40),
    ("reply", 0),
    ("reply", 12),
    ("reply", 60),
];

#[cfg(feature = "faults")]
#[test]
fn a_worker_killed_in_any_stage_changes_no_number() {
    let stored = Stored::new();
    let sets = ["train.epochs=30", "train.eval_every=30", "disaggregated.slots=2"];
    let expected = results(&stored.alone(&sets));
    for (stage, before) in DEATHS {
        let run = stored.start(2, &sets);
        let fault = format!("{stage}={before}*off->return");
        let mut victim = stored.worker(&run.uri, &["disaggregated.slots=2"]);
        let victim = Started::new(victim.env("FAILPOINTS", fault), "prepares batches for ");
        let mut other = stored.worker(&run.uri, &["disaggregated.slots=2"]);
        let other = Started::new(&mut other, "prepares batches for ");
        let (found, err) = run.succeeds();
        assert_eq!(results(&found), expected, "{stage} after {before}: {err}");
        assert_eq!(victim.end().0, None, "{stage} after {before}: it was to be killed");
        other.succeeds();
    }
}

/// Those who fetch features for other ranks ask another worker for them, too.
#[cfg(feature = "faults")]
#[test]
fn a_worker_killed_between_a_batch_and_its_features_changes_no_number() {
    let stored = Stored::new();
    let sets = ["train.epochs=30", "train.eval_every=30", "train.workers=3", "cache.memory=16KiB"];
    let expected = results(&stored.alone(&sets[..3]));
    for (stage, before) in [("rows", 0), ("rows", 9), ("rows", 50), ("reply", 21), ("sample", 40)] {
        let run = stored.start(2, &sets);
        let fault = format!("{stage}={before}*off->return");
        let mut victim = stored.worker(&run.uri, &[]);
        let victim = Started::new(victim.env("FAILPOINTS", fault), "prepares batches for ");
        let other = workers(&stored, &run.uri, 1);
        let (found, err) = run.succeeds();
        assert_eq!(results(&found), expected, "{stage} after {before}: {err}");
        assert_eq!(victim.end().0, None, "{stage} after {before}: it was to be killed");
        other.into_iter().for_each(|worker| drop(worker.succeeds()));
    }
}
