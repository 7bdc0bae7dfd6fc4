//! Commands that are told to end, killed, or started twice: outputs are whole, nothing temporary is
//! left after the next start, and who is in the way is named.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::common::{Bench, fail, gnarl, path, run_file, succeed};
use serde_json::Value;

/// Names in a folder, the first first.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A folder with edges that take a while to import.
fn edges() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("edges.csv");
    let mut text = String::from("src,dst\n");
    for edge in 0..400_000u64 {
        // Multiples of primes modulo a prime: edges between nodes all over the range.
        let src = edge * 7919 % 100_003;
        let dst = edge * 104_729 % 100_003;
        text += &format!("{src},{dst}\n");
    }
    std::fs::write(&file, text).unwrap();
    (dir, file)
}

fn start(args: &[&str]) -> Child {
    let mut command = gnarl();
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary starts")
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Starts a command again and again until it is sent `name` while `began` holds and before it ends.
fn interrupt(args: &[&str], name: &str, began: impl Fn() -> bool, undo: impl Fn()) -> Output {
    for _ in 0..20 {
        let mut child = start(args);
        while !began() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        if !output.status.success() {
            return output;
        }
        undo();
    }
    panic!("{args:?} always ends before it can be interrupted");
}

/// Tells whether a temporary folder lies in `dir`.
fn unfinished(dir: &Path) -> bool {
    names(dir).iter().any(|name| name.contains(".tmp-"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn r10_a_signal_leaves_nothing_of_an_import_and_says_so() {
    let (dir, file) = edges();
    let out = dir.path().join("g");
    let args = ["import", "csv", "--edges", path(&file), "--out", path(&out)];
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let undo = || std::fs::remove_dir_all(&out).unwrap();
        let output = interrupt(&args, name, || unfinished(dir.path()), undo);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{err}");
        assert!(err.contains("g.tmp-") && err.contains("was not whole"), "{err}");
        assert_eq!(names(dir.path()), ["edges.csv"]);
    }
}

#[test]
fn r10_the_next_command_removes_what_a_killed_one_left() {
    let (dir, file) = edges();
    let out = dir.path().join("g");
    let args = ["import", "csv", "--edges", path(&file), "--out", path(&out)];
    let undo = || std::fs::remove_dir_all(&out).unwrap();
    interrupt(&args, "KILL", || unfinished(dir.path()), undo);
    assert!(unfinished(dir.path()) && names(dir.path()).contains(&".g.lock".to_string()));
    let other = dir.path().join("other");
    let made =
        succeed(&["generate", "rmat", "--nodes", "99", "--edges", "99", "--out", path(&other)]);
    assert_eq!(made["nodes"], 99);
    assert_eq!(names(dir.path()), ["edges.csv", "other"], "also where the next has another name");
    succeed(&args);
    assert_eq!(names(dir.path()), ["edges.csv", "g", "other"]);
}

#[test]
fn r10_partitions_are_whole_or_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let graph = dir.path().join("g");
    let rmat = ["generate", "rmat", "--nodes", "50000", "--edges", "400000"];
    succeed(&[&rmat[..], &["--out", path(&graph)]].concat());
    let out = dir.path().join("parts");
    let words = ["--algorithm", "random", "--parts", "4", "--out", path(&out)];
    let args = [&["partition", path(&graph)], &words[..]].concat();
    for name in ["INT", "TERM", "KILL"] {
        let undo = || std::fs::remove_dir_all(&out).unwrap();
        interrupt(&args, name, || unfinished(dir.path()), undo);
        assert!(!out.exists(), "{name}");
        assert!(name == "KILL" || names(dir.path()) == ["g"], "{name}: {:?}", names(dir.path()));
    }
    succeed(&args);
    assert_eq!(names(dir.path()), ["g", "parts"]);
    let err = fail(&args, 2);
    assert!(err.contains("holds a partition already") && err.contains("--force"), "{err}");
    succeed(&[&args[..], &["--force"]].concat());
}

/// A reader that never gets anything keeps an import waiting.
#[cfg(unix)]
#[test]
fn r1_one_output_has_one_writer() {
    let (dir, file) = edges();
    let pipe = dir.path().join("pipe.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let out = dir.path().join("g");
    let mut first = start(&["import", "csv", "--edges", path(&pipe), "--out", path(&out)]);
    while !dir.path().join(".g.lock").exists() {
        assert!(first.try_wait().unwrap().is_none(), "it waits for the pipe");
        std::thread::yield_now();
    }
    let args = ["import", "csv", "--edges", path(&file), "--out", path(&out)];
    let err = fail(&args, 2);
    let holder = format!("is being written by process {} on ", first.id());
    assert!(err.contains(&holder) && err.contains("hint: "), "{err}");
    first.kill().unwrap();
    first.wait().unwrap();
    succeed(&args);
}

#[cfg(unix)]
#[test]
fn r14_a_temporary_folder_is_never_one_that_was_there() {
    let (dir, file) = edges();
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, dir.path().join(".g.lock")).unwrap();
    let out = dir.path().join("g");
    let args = ["import", "csv", "--edges", path(&file), "--out", path(&out)];
    let err = fail(&args, 1);
    assert!(err.contains(".g.lock"), "{err}");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    std::fs::remove_file(dir.path().join(".g.lock")).unwrap();
    // What others call alike is neither entered nor removed.
    std::fs::create_dir(dir.path().join("g.tmp-1")).unwrap();
    std::fs::write(dir.path().join("g.tmp-1/extra.bin"), "x").unwrap();
    succeed(&args);
    assert!(!names(&out).contains(&"extra.bin".to_string()));
    assert!(dir.path().join("g.tmp-1/extra.bin").exists());
}

#[cfg(unix)]
#[test]
fn r16_a_limit_on_file_sizes_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("g");
    let script = "ulimit -f 200; exec \"$@\"";
    let rmat = ["generate", "rmat", "--nodes", "50000", "--edges", "400000", "--out", path(&out)];
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash"]).arg(gnarl().get_program()).args(rmat);
    let output = command.output().unwrap();
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("File too large") && err.contains("g.tmp-"), "{err}");
    assert!(names(dir.path()).is_empty());
}

const RUN: &str = "[train]\nepochs = 40\ncheckpoint_seconds = 0\n";

/// What must be the same, whatever happened.
fn numbers(summary: &Value) -> Value {
    let keys = ["losses", "test", "valid", "best_epoch", "epochs"];
    Value::Object(keys.iter().map(|key| (key.to_string(), summary[*key].clone())).collect())
}

#[test]
fn a_run_told_to_end_saves_its_epoch_and_goes_on_to_the_same_numbers() {
    let bench = Bench::new(&RUN.replace("seconds = 0", "seconds = 1000"));
    let expected = bench.train(&[]);
    let args = bench.args(&[]);
    for name in ["INT", "TERM"] {
        std::fs::remove_dir_all(&bench.run).unwrap();
        let lines = || std::fs::read_to_string(bench.run.join("metrics.jsonl")).unwrap_or_default();
        let began = || lines().lines().count() > 2;
        let undo = || std::fs::remove_dir_all(&bench.run).unwrap();
        let output = interrupt(&args, name, began, undo);
        let err = text(&output.stderr);
        assert!(err.contains("stopped after epoch") && err.contains("--resume"), "{err}");
        assert_eq!(output.status.code(), Some(if name == "INT" { 130 } else { 143 }), "{err}");
        assert!(!names(&bench.run).iter().any(|name| name.contains("tmp-")));
        let again = succeed(&[&args[..], &["--resume"]].concat());
        assert_eq!(numbers(&again), numbers(&expected));
    }
}

#[test]
fn r8_a_folder_has_one_run_at_a_time() {
    let bench = Bench::new(RUN);
    let long = bench.args(&["train.epochs=100000"]);
    let mut first = start(&long);
    while !bench.run.join("metrics.jsonl").exists() {
        assert!(first.try_wait().unwrap().is_none(), "it trains for long");
        std::thread::yield_now();
    }
    for how in ["--restart", "--resume"] {
        let err = fail(&[&bench.args(&["train.seed=9"])[..], &[how]].concat(), 2);
        let says = format!("a run is being trained there by process {} on ", first.id());
        assert!(err.contains(&says), "{err}");
    }
    first.kill().unwrap();
    first.wait().unwrap();
    bench.train(&[]);
}

#[test]
fn finished_runs_are_kept_and_numbered() {
    let bench = Bench::new("[train]\nepochs = 2\n[partition]\nparts = 2\n");
    let first = succeed(&bench.args(&[]));
    let model = std::fs::read(bench.run.join("model.safetensors")).unwrap();
    let second = succeed(&bench.args(&["train.lr=0.5"]));
    let beside = format!("{}-2", path(&bench.run));
    assert_eq!(
        (&first["run_dir"], &second["run_dir"]),
        (&path(&bench.run).into(), &beside.clone().into())
    );
    assert_eq!(std::fs::read(bench.run.join("model.safetensors")).unwrap(), model);
    assert!(!Path::new(&beside).join("partition").exists(), "the cut of the first run is taken");
    // The last of its name goes on, for longer.
    let longer = [&bench.args(&["train.lr=0.5", "train.epochs=4"])[..], &["--resume"]].concat();
    let longer = succeed(&longer);
    assert_eq!((&longer["run_dir"], longer["epochs"].as_u64()), (&beside.into(), Some(4)));
    let shorter = [&bench.args(&["train.lr=0.5", "train.epochs=3"])[..], &["--resume"]].concat();
    let err = fail(&shorter, 2);
    assert!(err.contains("invalid train.epochs '3': the run has trained 4"), "{err}");
}

#[test]
fn a_longer_run_has_the_numbers_of_one_that_was_long_from_the_start() {
    let bench = Bench::new("[train]\nepochs = 3\n");
    succeed(&bench.args(&[]));
    let resumed = succeed(&[&bench.args(&["train.epochs=6"])[..], &["--resume"]].concat());
    let whole = bench.train(&["train.epochs=6"]);
    assert_eq!(numbers(&resumed), numbers(&whole));
}

#[test]
fn folders_of_something_else_are_not_mixed_with_a_run() {
    let bench = Bench::new(RUN);
    let graph = path(&bench.graph);
    for place in [graph, path(bench.dir.path())] {
        let set = format!("output.dir={place}");
        let err = fail(&["train", path(&bench.file), "--set", &set], 2);
        assert!(err.contains("output.dir") && err.contains("hint: "), "{err}");
    }
}

#[test]
fn data_made_anew_is_not_taken_for_what_a_run_began_with() {
    let bench = Bench::new("[train]\nepochs = 2\n");
    succeed(&bench.args(&[]));
    let anew = ["--nodes", "2000", "--communities", "4", "--classes", "4", "--features", "16"];
    let rest = ["--seed", "6", "--force", "--out", path(&bench.graph)];
    succeed(&[&["generate", "community"], &anew[..], &rest].concat());
    let err = fail(&["eval", path(&bench.run)], 2);
    assert!(err.contains("differs from that at the start of the run"), "{err}");
    succeed(&["eval", path(&bench.run), "--dataset", path(&bench.graph)]);
    let err = fail(&[&bench.args(&["train.epochs=3"])[..], &["--resume"]].concat(), 2);
    assert!(err.contains("differs from that at the start of the run"), "{err}");
}

#[test]
fn a_run_is_judged_from_any_folder_and_homes_are_found() {
    let bench = Bench::new(RUN);
    let dir = bench.dir.path();
    run_file(
        dir,
        Path::new("graph"),
        "[model]\nname = 'gcn'\n[train]\nepochs = 1\n[output]\ndir = '~/run'\n",
    );
    let train = gnarl().args(["train", "run.toml"]).current_dir(dir).env("HOME", dir).output();
    let train = train.unwrap();
    assert!(train.status.success(), "{}", text(&train.stderr));
    let judged = gnarl().args(["eval", path(&dir.join("run"))]).current_dir("/").output().unwrap();
    assert!(judged.status.success(), "{}", text(&judged.stderr));
    assert!(!dir.join("~").exists());
}
