//! What a run does when something breaks: it ends soon with an error that says what, or goes on, and in
//! the end has the numbers of a run that nothing happened to.

#[cfg(all(target_os = "linux", feature = "faults"))]
mod changed;
mod damaged;
mod disk;
#[cfg(feature = "faults")]
mod evaluating;
#[cfg(all(feature = "mpi", feature = "faults"))]
mod killed;
mod link;
mod service;
#[cfg(all(feature = "mpi", feature = "faults"))]
mod settings;
#[cfg(all(feature = "mpi", feature = "faults"))]
mod slow;

use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Bench, gnarl, path, succeed};
use serde_json::Value;

/// A graph in two parts, and a run file to train on it.
struct Divided {
    bench: Bench,
    parts: PathBuf,
    /// Settings of all runs.
    sets: &'static [&'static str],
}

/// Settings of runs on a graph of several types.
const TYPED: [&str; 4] =
    ["task.node_type=paper", "model.name=rgcn", "sample.fanouts=[4,3]", "sample.method=exact"];

/// Settings of runs that predict edges.
const LINKS: [&str; 7] = [
    "task.kind=link-prediction",
    "embedding.dim=8",
    "negatives.count=16",
    "negatives.filtered=true",
    "sample.batch_size=1000",
    "sample.fanouts=[4,3]",
    "sample.method=exact",
];

/// Settings of runs whose embeddings are in files of their owners.
#[cfg(all(feature = "mpi", feature = "faults"))]
const IN_FILES: [&str; 7] = [
    "task.kind=link-prediction",
    "model.name=none",
    "embedding.dim=8",
    "embedding.store=file",
    "negatives.count=16",
    "sample.batch_size=1000",
    "sample.buckets=4",
];

impl Divided {
    /// With `train` among the lines of `[train]`.
    fn new(train: &str) -> Self {
        Self::cut(train, &["--algorithm", "spring"])
    }

    /// The same, cut otherwise.
    fn cut(train: &str, layout: &[&str]) -> Self {
        let bench = Bench::new(&format!("[train]\ncheckpoint_seconds = 0\n{train}\n"));
        let parts = bench.dir.path().join("parts");
        let cut = ["partition", path(&bench.graph), "--parts", "2", "--out", path(&parts)];
        succeed(&[&cut[..], layout].concat());
        Self { bench, parts, sets: &[] }
    }

    /// A graph of four node types, two of them with embeddings, cut by vertices.
    fn typed(train: &str) -> Self {
        let bench = Bench::new(&format!("[train]\ncheckpoint_seconds = 0\n{train}\n"));
        let dir = bench.dir.path();
        let graph = dir.join("typed");
        let parts = dir.join("parts");
        let made = ["generate", "typed", "--nodes", "2400", "--edges", "16000"];
        let sizes = ["--communities", "4", "--features", "8", "--out", path(&graph)];
        succeed(&[&made[..], &sizes].concat());
        let cut = ["partition", path(&graph), "--parts", "2", "--out", path(&parts)];
        let layout = ["--layout", "vertex-cut", "--algorithm", "adadne"];
        succeed(&[&cut[..], &layout].concat());
        Self { bench, parts, sets: &TYPED }
    }

    /// Parts of which some are in memory at a time.
    #[cfg(all(feature = "mpi", feature = "faults"))]
    fn stored(train: &str) -> Self {
        let bench = Bench::new(&format!("[train]\ncheckpoint_seconds = 0\n{train}\n"));
        let parts = bench.dir.path().join("parts");
        let cut = ["partition", path(&bench.graph), "--parts", "6", "--out", path(&parts)];
        succeed(&[&cut[..], &["--layout", "storage"]].concat());
        Self { bench, parts, sets: &["train.strategy=disaggregated", "disaggregated.resident=2"] }
    }

    /// Link prediction by GraphSAGE, on parts of its message graph.
    fn links(train: &str, layout: &[&str]) -> Self {
        Self::predicting(train, layout, &LINKS)
    }

    /// Link prediction by embeddings in files.
    #[cfg(all(feature = "mpi", feature = "faults"))]
    fn in_files(train: &str) -> Self {
        Self::predicting(train, &["--algorithm", "spring"], &IN_FILES)
    }

    fn predicting(train: &str, layout: &[&str], sets: &'static [&'static str]) -> Self {
        let bench = Bench::new(&format!("[train]\ncheckpoint_seconds = 0\n{train}\n"));
        let parts = bench.dir.path().join("parts");
        let cut = ["partition", path(&bench.graph), "--parts", "2", "--out", path(&parts)];
        let task = ["--task", path(&bench.file)];
        let given = sets.iter().flat_map(|set| ["--set", set]);
        succeed(&[&cut[..], layout, &task, &given.collect::<Vec<_>>()].concat());
        Self { bench, parts, sets }
    }

    /// How many epochs the run has trained.
    fn trained(&self) -> usize {
        let lines = std::fs::read_to_string(self.bench.run.join("metrics.jsonl"));
        lines.map_or(0, |text| text.lines().count())
    }

    /// A copy of the partition that has no part but `keep`.
    fn only(&self, keep: usize) -> PathBuf {
        let to = self.bench.dir.path().join(format!("only-{keep}"));
        copy(&self.parts, &to);
        std::fs::remove_dir_all(to.join(format!("part-{}", 1 - keep))).unwrap();
        to
    }

    /// Arguments that train on the partition in `parts`, whose other parts `servers` have.
    fn args(&self, parts: &Path, servers: &str, sets: &[&str]) -> Vec<String> {
        let servers = format!("partition.servers={servers}");
        self.alone(parts, &[&[servers.as_str()], sets].concat())
    }

    /// Arguments that train on the partition in `parts`, of which all are here.
    fn alone(&self, parts: &Path, sets: &[&str]) -> Vec<String> {
        let parts = format!("partition.path={}", path(parts));
        let sets = [&[parts.as_str()], self.sets, sets].concat();
        self.bench.args(&sets).into_iter().map(String::from).collect()
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-r").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// What must be the same, whatever happened.
fn numbers(summary: &Value) -> Value {
    let keys = ["losses", "test", "valid", "best_epoch", "epochs"];
    let pairs = keys.map(|key| (key.to_string(), summary[key].clone()));
    Value::Object(pairs.into_iter().collect())
}

/// A run under way.
struct Run<'a> {
    child: Option<Child>,
    divided: &'a Divided,
}

impl<'a> Run<'a> {
    /// Starts `gnarl` with the arguments.
    fn start(divided: &'a Divided, args: &[String]) -> Self {
        let mut run = gnarl();
        run.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { child: Some(run.spawn().expect("the binary starts")), divided }
    }

    /// Waits until some epochs more are trained.
    fn trains(&mut self, epochs: usize) {
        let (start, goal) = (Instant::now(), self.divided.trained() + epochs);
        let child = self.child.as_mut().expect("it is not awaited yet");
        while self.divided.trained() < goal {
            assert!(child.try_wait().unwrap().is_none(), "the run is over too soon");
            assert!(start.elapsed() < Duration::from_secs(60), "the run does not get on");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for its end.
    fn end(mut self) -> Output {
        self.child.take().expect("it is not awaited yet").wait_with_output().unwrap()
    }

    /// Waits for its result.
    fn result(self) -> Value {
        let output = self.end();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{err}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
