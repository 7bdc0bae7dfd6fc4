//! What the command-line tests share.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The binary under test.
pub fn gnarl() -> Command {
    Command::new(env!("CARGO_BIN_EXE_gnarl"))
}

/// Runs a command that must succeed; its last line as JSON.
pub fn succeed(args: &[&str]) -> Value {
    let output = gnarl().args(args).output().expect("the binary starts");
    let (out, err) = texts(&output);
    assert!(output.status.success(), "gnarl {args:?} failed:\n{err}");
    let last = out.lines().last().unwrap_or_else(|| panic!("no result; stderr:\n{err}"));
    serde_json::from_str(last).expect("the last line is JSON")
}

/// Runs a command that must fail with `code`; its stderr.
pub fn fail(args: &[&str], code: i32) -> String {
    let output = gnarl().args(args).output().expect("the binary starts");
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(code), "gnarl {args:?}\n{out}\n{err}");
    assert!(!err.contains("panicked"), "a panic on user input:\n{err}");
    err
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// A community graph that trains in moments.
pub fn community(dir: &Path) -> PathBuf {
    let out = dir.join("graph");
    succeed(&[
        "generate",
        "community",
        "--nodes",
        "2000",
        "--communities",
        "4",
        "--classes",
        "4",
        "--features",
        "16",
        "--average-degree",
        "8",
        "--seed",
        "5",
        "--out",
        path(&out),
    ]);
    out
}

/// A run file with the given lines after the dataset.
pub fn run_file(dir: &Path, dataset: &Path, rest: &str) -> PathBuf {
    let file = dir.join("run.toml");
    let text = format!("[dataset]\npath = '{}'\n{rest}", dataset.display());
    std::fs::write(&file, text).expect("the test's folder is writable");
    file
}

/// A run file that trains GraphSAGE on a community graph, in a folder of its own.
pub struct Bench {
    pub dir: tempfile::TempDir,
    pub graph: PathBuf,
    pub file: PathBuf,
    /// The run's folder, and the setting that places it.
    pub run: PathBuf,
    out: String,
}

impl Bench {
    /// With `rest` after the lines of the model and the sampler.
    pub fn new(rest: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder for tests");
        let graph = community(dir.path());
        let sage = "[model]\nname = 'sage'\nhidden = 32\ndropout = 0.5\n\
                    [sample]\nfanouts = [5, 5]\nbatch_size = 100";
        let file = run_file(dir.path(), &graph, &format!("{sage}\n{rest}"));
        let run = dir.path().join("run");
        let out = format!("output.dir={}", run.display());
        Self { dir, graph, file, run, out }
    }

    /// Arguments that train with the settings `sets`, which come last.
    pub fn args<'a>(&'a self, sets: &[&'a str]) -> Vec<&'a str> {
        let sets = [&self.out].into_iter().map(String::as_str).chain(sets.iter().copied());
        let sets = sets.flat_map(|set| ["--set", set]);
        ["train", path(&self.file)].into_iter().chain(sets).collect()
    }

    /// The result of training with the settings `sets`, in place of the run before.
    pub fn train(&self, sets: &[&str]) -> Value {
        succeed(&[&self.args(sets)[..], &["--restart"]].concat())
    }
}

/// The results of a run that do not depend on times, memory and places.
pub fn results(summary: &Value) -> Value {
    let keys = ["test", "valid", "best_epoch", "epochs", "losses"];
    let named = keys.map(|key| (key.to_string(), summary[key].clone()));
    named.into_iter().collect::<serde_json::Map<_, _>>().into()
}

/// A path as an argument.
pub fn path(path: &Path) -> &str {
    path.to_str().expect("test paths are UTF-8")
}

/// Names of the files below `dir`, in all folders.
#[cfg(feature = "cloud")]
pub fn files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    let of = |entry: std::fs::DirEntry| match entry.path().is_dir() {
        true => files(&entry.path()),
        false => vec![entry.file_name().to_string_lossy().into_owned()],
    };
    entries.flat_map(of).collect()
}
