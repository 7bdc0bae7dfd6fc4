//! Runs, their data and their partitions in a store, for which a folder stands.

use std::fs::{read, read_dir, rename, write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::Value;

use crate::common::{Bench, files, gnarl, path, results, succeed};

const RUN: &str = "[train]\nepochs = 40\ncheckpoint_seconds = 0\n";

/// A bench, and a folder that is a store.
struct Store {
    bench: Bench,
}

impl Store {
    fn new(rest: &str) -> Self {
        Self { bench: Bench::new(rest) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.bench.dir.path().join("store").join(name)
    }

    fn address(&self, name: &str) -> String {
        format!("file://{}", self.file(name).display())
    }

    /// A command on the host `host`, which has a cache of its own.
    fn on(&self, host: usize, args: &[&str]) -> Command {
        let mut command = gnarl();
        let cache = self.bench.dir.path().join(format!("cache-{host}"));
        command.args(args).env("GNARL_CACHE", cache).env("GNARL_HOST", format!("m{host}"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Training on a host with the run at `run/first` of the store.
    fn train(&self, host: usize, words: &[&str]) -> Command {
        let out = format!("output.dir={}", self.address("run/first"));
        self.on(host, &[&self.bench.args(&[&out])[..], words].concat())
    }

    /// Waits until the run has a checkpoint in the store.
    fn saved(&self) {
        let start = Instant::now();
        while !self.file("run/first/checkpoint.safetensors").exists() {
            assert!(start.elapsed() < Duration::from_secs(60), "no checkpoint");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The result of a command that succeeds.
fn result(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(output));
    let out = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(out.lines().last().unwrap()).unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

fn names(dir: &Path) -> Vec<String> {
    let entries = read_dir(dir).unwrap().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    // What a killed process had begun to upload, which no store but a folder shows.
    names.retain(|name| !name.contains('#'));
    names.sort();
    names
}

#[test]
fn a_run_killed_on_six_hosts_ends_on_the_seventh_with_the_same_numbers() {
    let store = Store::new(&RUN.replace("40", "400"));
    let start = Instant::now();
    let expected = store.bench.train(&[]);
    let length = start.elapsed();
    for host in 0..6u32 {
        let mut child = store.train(host as usize, &["--resume"]).spawn().unwrap();
        // 5 and 7 are coprime: the delays differ and fall anywhere in an epoch.
        std::thread::sleep(length * (1 + host * 5 % 7) / 28);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let output = store.train(6, &["--resume"]).output().unwrap();
    let found = result(&output);
    assert_eq!(results(&found), results(&expected));
    assert!(text(&output).contains("resuming after epoch"), "{}", text(&output));
    let run = store.address("run/first");
    assert_eq!(found["run_dir"], Value::from(run.clone()));
    let expected_names = [
        "checkpoint.safetensors",
        "classes.json",
        "config.toml",
        "graph.json",
        "metrics.jsonl",
        "model.safetensors",
        "report.html",
        "run.json",
        "summary.json",
    ];
    assert_eq!(names(&store.file("run/first")), expected_names);
    assert!(names(&store.bench.dir.path().join("cache-6/folders")).is_empty());

    // Any host has the model, and a new run goes beside it.
    let here = succeed(&["eval", path(&store.bench.run)]);
    let there = result(&store.on(7, &["eval", &run]).output().unwrap());
    assert_eq!((&here["test"], &there["finished"]), (&there["test"], &true.into()));
    let [a, b] = ["a.csv", "b.csv"].map(|name| store.bench.dir.path().join(name));
    succeed(&["infer", path(&store.bench.run), "--out", path(&a)]);
    result(&store.on(7, &["infer", &run, "--out", path(&b)]).output().unwrap());
    assert_eq!(read(a).unwrap(), read(b).unwrap());
    let compare = store.on(9, &["compare", &run, path(&store.bench.run)]).output().unwrap();
    let compared = &result(&compare)["runs"];
    assert_eq!((&compared[0]["epochs"], &compared[0]["loss"]), (&400.into(), &compared[1]["loss"]));
    let fetched = files(&store.bench.dir.path().join("cache-9"));
    assert!(fetched.contains(&"metrics.jsonl".into()), "{fetched:?}");
    assert!(!fetched.contains(&"model.safetensors".into()), "{fetched:?}");
    let next = result(&store.train(8, &["--set", "train.epochs=1"]).output().unwrap());
    assert_eq!(next["run_dir"], store.address("run/first-2"));
}

#[test]
fn a_run_told_to_end_is_uploaded_first() {
    let store = Store::new("[train]\nepochs = 2000\n");
    let child = store.train(0, &["--set", "train.checkpoint_seconds=0.2"]).spawn().unwrap();
    store.saved();
    signal(&child, "TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", text(&output));
    let said = text(&output);
    let epoch = said.split("stopped after epoch ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(!store.file("run/first/writer.json").exists());
    let again = store.train(1, &["--set", "train.epochs=1"]).output().unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again).contains("run/first: holds an unfinished run"), "{}", text(&again));
    let epochs = format!("train.epochs={epoch}");
    let output = store.train(1, &["--resume", "--set", &epochs]).output().unwrap();
    assert_eq!(result(&output)["epochs"].to_string(), epoch);
    assert!(text(&output).contains(&format!("resuming after epoch {epoch}")));
}

#[test]
fn one_process_trains_a_run() {
    let store = Store::new("[train]\nepochs = 20000\ncheckpoint_seconds = 0\n");
    let first = store.train(0, &[]).spawn().unwrap();
    store.saved();
    // Whoever cannot go on with it leaves it alone.
    let other = store.train(1, &["--resume", "--set", "model.hidden=8"]).output().unwrap();
    assert_eq!(other.status.code(), Some(2), "{}", text(&other));
    assert!(text(&other).contains("model.hidden differs"), "{}", text(&other));
    let second = store.train(1, &["--resume"]).spawn().unwrap();
    let output = first.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let said = text(&output);
    assert!(said.contains("of m1 has taken this run over"), "{said}");
    signal(&second, "TERM");
    let output = second.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", text(&output));
    assert!(text(&output).contains("of m0 has trained there and did not end"), "{}", text(&output));
}

#[test]
fn a_store_that_is_away_for_a_while_loses_nothing() {
    // Long enough to be seen while it trains.
    let store = Store::new(&RUN.replace("40", "400"));
    let expected = store.bench.train(&[]);
    let child = store.train(0, &[]).spawn().unwrap();
    store.saved();
    let [place, aside] = ["run", "aside"].map(|name| store.file(name));
    write(&aside, "no folder").unwrap();
    // At once: an upload between two steps would make the folder anew.
    renameat_with(CWD, &place, CWD, &aside, RenameFlags::EXCHANGE).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let said = text(&output);
    assert!(said.contains("which stay there for --resume on this host"), "{said}");
    std::fs::remove_file(&place).unwrap();
    rename(&aside, &place).unwrap();
    // As if the answer to the last upload had been lost.
    let kept = read_dir(store.bench.dir.path().join("cache-0/folders")).unwrap();
    let kept = kept.map(|entry| entry.unwrap().path()).find(|folder| folder.is_dir()).unwrap();
    assert!(kept.join("checkpoint.safetensors").exists());
    write(kept.join("uploaded.version"), "another").unwrap();
    let output = store.train(0, &["--resume"]).output().unwrap();
    assert_eq!(results(&result(&output)), results(&expected));
    assert!(text(&output).contains("resuming after epoch 400"), "{}", text(&output));
}

#[test]
fn data_and_parts_of_a_store_are_trained_on() {
    let store = Store::new("[train]\nepochs = 2\nworkers = 2\n");
    let graph = path(&store.bench.graph);
    let parts = store.bench.dir.path().join("parts");
    succeed(&["partition", graph, "--parts", "2", "--out", path(&parts)]);
    let here = format!("partition.path={}", path(&parts));
    let expected = store.bench.train(&[&here]);
    super::folder::copy(&store.bench.graph, &store.file("graph"));
    super::folder::copy(&parts, &store.file("parts"));
    let there = [
        format!("dataset.path={}", store.address("graph")),
        format!("partition.path={}", store.address("parts")),
    ];
    let words = ["--set", &there[0], "--set", &there[1]];
    let found = result(&store.train(0, &words).output().unwrap());
    assert_eq!(results(&found), results(&expected));
    // The run knows its data by the address, on any host.
    let run = store.address("run/first");
    let found = result(&store.on(1, &["eval", &run]).output().unwrap());
    assert_eq!(found["test"], expected["test"]);
    let config = std::fs::read_to_string(store.file("run/first/config.toml")).unwrap();
    assert!(config.contains(&store.address("graph")), "{config}");
}
