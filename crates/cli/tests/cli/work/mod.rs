//! Batch workers: processes that prepare the batches of a training run.

mod faults;
mod heterogeneous;
mod metrics;
mod numbers;
mod refused;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use serde_json::Value;

use crate::common::{Bench, gnarl, path, results, succeed};

const TRAIN: &str = "[train]\nstrategy = 'disaggregated'\nepochs = 4\ndeadline_seconds = 40\n\
                     checkpoint_seconds = 0\n[disaggregated]\nresident = 2\n";

/// A graph in six parts, and a run file that has two of them in memory at a time.
pub struct Stored {
    pub bench: Bench,
    parts: PathBuf,
    pub place: String,
}

impl Stored {
    pub fn new() -> Self {
        let bench = Bench::new(TRAIN);
        let parts = bench.dir.path().join("parts");
        let cut = ["partition", path(&bench.graph), "--parts", "6", "--out", path(&parts)];
        succeed(&[&cut[..], &["--layout", "storage"]].concat());
        let place = format!("partition.path={}", parts.display());
        Self { bench, parts, place }
    }

    /// The result of a run that prepares its own batches.
    pub fn alone(&self, sets: &[&str]) -> Value {
        self.bench.train(&[sets, &[&self.place]].concat())
    }

    /// A run that waits for `workers` batch workers.
    fn start(&self, workers: usize, sets: &[&str]) -> Started {
        let workers = format!("disaggregated.batch_workers={workers}");
        let args = self.bench.args(&[sets, &[&self.place, &workers]].concat());
        Started::new(gnarl().args(args).arg("--restart"), "--join ")
    }

    /// The command of a batch worker that joins the coordinator at `uri`.
    pub fn worker(&self, uri: &str, sets: &[&str]) -> Command {
        let mut worker = gnarl();
        worker.args(["work", path(&self.bench.file), "--role", "batch", "--join", uri]);
        worker.args(["--threads", "2"]);
        for set in sets.iter().copied().chain([self.place.as_str()]) {
            worker.args(["--set", set]);
        }
        worker
    }
}

/// A process that says where it listens.
pub struct Started {
    child: Child,
    pub uri: String,
    err: Option<JoinHandle<String>>,
}

impl Started {
    /// Starts `command`, and waits for its address, which ends the line with `before` it.
    pub fn new(command: &mut Command, before: &str) -> Self {
        let spawned = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.expect("the binary starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut seen = String::new();
        let uri = loop {
            let line = lines.next().unwrap_or_else(|| panic!("no address: {seen}"));
            let line = line.expect("stderr is text");
            if let Some((_, uri)) = line.split_once(before) {
                break uri.trim().to_string();
            }
            seen.push_str(&line);
        };
        // A pipe that nobody reads would stop it.
        let err = std::thread::spawn(move || {
            lines.map_while(Result::ok).map(|line| line + "\n").collect::<String>()
        });
        Self { child, uri, err: Some(err) }
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Waits for its end: its exit code, its last line, and what it logged since its address.
    fn end(mut self) -> (Option<i32>, Value, String) {
        let code = self.child.wait().expect("it ends").code();
        let mut out = String::new();
        let stdout = self.child.stdout.as_mut().expect("piped");
        stdout.read_to_string(&mut out).expect("stdout is text");
        let last = out.lines().last().map(|line| serde_json::from_str(line).expect("JSON"));
        let err = self.err.take().map(|err| err.join().expect("it is read"));
        (code, last.unwrap_or_default(), err.unwrap_or_default())
    }

    /// The result of a process that must succeed, and what it logged.
    pub fn succeeds(self) -> (Value, String) {
        let (code, last, err) = self.end();
        assert_eq!(code, Some(0), "{err}");
        (last, err)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Asserts that runs with batch workers and the settings `sets` have the numbers of those that make their batches.
fn assert_same_numbers(stored: &Stored, sets: &[impl AsRef<str>]) {
    let sets: Vec<&str> = sets.iter().map(AsRef::as_ref).collect();
    for ranks in ["train.workers=1", "train.workers=2"] {
        let of_run = [&sets[..], &[ranks]].concat();
        let expected = results(&stored.alone(&of_run));
        for count in [1, 2] {
            let run = stored.start(count, &of_run);
            let start =
                |_| Started::new(&mut stored.worker(&run.uri, &sets), "prepares batches for ");
            let _workers: Vec<Started> = (0..count).map(start).collect();
            let (found, err) = run.succeeds();
            assert_eq!(results(&found), expected, "{ranks}, {count} batch workers: {err}");
        }
    }
}

/// Starts batch workers that join `uri`.
fn workers(stored: &Stored, uri: &str, count: usize) -> Vec<Started> {
    let start = |_| Started::new(&mut stored.worker(uri, &[]), "prepares batches for ");
    (0..count).map(start).collect()
}
