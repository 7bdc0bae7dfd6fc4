//! A folder that stands for a store.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::RUN;
use crate::common::{Bench, gnarl, path};

/// A run, a folder that is a store, and a cache.
struct Store {
    bench: Bench,
}

impl Store {
    fn new() -> Self {
        let bench = Bench::new(RUN);
        bench.train(&[]);
        Self { bench }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.bench.dir.path().join("store").join(name)
    }

    fn address(&self, name: &str) -> String {
        format!("file://{}", self.file(name).display())
    }

    fn run(&self, args: &[&str], limit: &str) -> Output {
        let cache = self.bench.dir.path().join("cache");
        let mut command = gnarl();
        command.args(args).env("GNARL_CACHE", cache).env("GNARL_CACHE_BYTES", limit);
        command.output().unwrap()
    }

    /// The result of a command that succeeds.
    fn succeed(&self, args: &[&str]) -> Value {
        let output = self.run(args, "");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "gnarl {args:?}: {text}");
        let out = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(out.lines().last().unwrap()).unwrap()
    }

    /// The message of a command that fails.
    fn fail(&self, args: &[&str], code: i32) -> String {
        let output = self.run(args, "1KiB");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "gnarl {args:?}: {text}");
        text
    }

    /// Arguments that write logits to the address `out`.
    fn logits<'a>(&'a self, out: &'a str) -> [&'a str; 6] {
        ["infer", path(&self.bench.run), "--out", out, "--what", "logits"]
    }
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

#[test]
fn tables_are_those_of_this_host() {
    let store = Store::new();
    let out = store.address("deep/nodes.npy");
    let found = store.succeed(&store.logits(&out));
    assert_eq!(found["files"], json!([out, store.address("deep/nodes.ids.npy")]));
    assert_eq!(found["out"], json!(out));
    let local = store.bench.dir.path().join("nodes.npy");
    store.succeed(&store.logits(path(&local)));
    for name in ["nodes.npy", "nodes.ids.npy"] {
        let here = std::fs::read(local.with_file_name(name)).unwrap();
        assert!(std::fs::read(store.file("deep").join(name)).unwrap() == here, "{name}");
    }
    let text = store.fail(&store.logits(&out), 2);
    assert!(text.contains("nodes.npy: exists already") && text.contains("--force"), "{text}");
    std::fs::remove_file(store.file("deep/nodes.npy")).unwrap();
    let text = store.fail(&store.logits(&out), 2);
    assert!(text.contains("nodes.ids.npy: exists already"), "{text}");
    store.succeed(&[&store.logits(&out)[..], &["--force"]].concat());

    let text = store.fail(&store.logits(&store.address("nodes.parket")), 2);
    assert!(text.contains("did you mean 'parquet'"), "{text}");
    let text = store.fail(&store.logits("s4://bucket/nodes.csv"), 2);
    assert!(text.contains("unknown scheme 's4'"), "{text}");
}

#[cfg(feature = "zarr")]
#[test]
fn groups_are_replaced_as_a_whole() {
    let store = Store::new();
    let out = store.address("nodes.zarr");
    let infer = ["infer", path(&store.bench.run), "--out", &out];
    store.succeed(&store.logits(&out));
    assert!(store.file("nodes.zarr/zarr.json").exists());
    let text = store.fail(&infer, 2);
    assert!(text.contains("nodes.zarr: exists already"), "{text}");
    store.succeed(&[&infer[..], &["--force"]].concat());
    assert!(store.file("nodes.zarr/class/zarr.json").exists());
    assert!(!store.file("nodes.zarr/logits/zarr.json").exists());
    std::fs::write(store.file("nodes.zarr/zarr.json"), "{}").unwrap();
    let text = store.fail(&[&infer[..], &["--force"]].concat(), 2);
    assert!(text.contains("is not a Zarr group"), "{text}");
}

#[test]
fn datasets_are_fetched() {
    let store = Store::new();
    copy(&store.bench.graph, &store.file("graph"));
    let graph = store.address("graph");
    let text = store.fail(&["inspect", &graph], 1);
    assert!(text.contains(" has ") && text.contains("and the cache at most 1.0 KiB"), "{text}");
    assert!(text.contains("GNARL_CACHE_BYTES"), "{text}");
    let found = store.succeed(&["inspect", &graph, "--verify"]);
    assert_eq!(found, store.succeed(&["inspect", path(&store.bench.graph), "--verify"]));

    let run = store.bench.dir.path().join("again");
    let sets = [format!("dataset.path={graph}"), format!("output.dir={}", run.display())];
    let file = path(&store.bench.file);
    store.succeed(&["train", file, "--set", &sets[0], "--set", &sets[1]]);
    let [here, there] = ["here.csv", "there.csv"].map(|name| store.bench.dir.path().join(name));
    store.succeed(&store.logits(path(&here)));
    let args = [&store.logits(path(&there))[..], &["--dataset", &graph]].concat();
    store.succeed(&args);
    assert!(std::fs::read(here).unwrap() == std::fs::read(there).unwrap());
    store.succeed(&["eval", path(&store.bench.run), "--dataset", &graph]);
    let cached = std::fs::read_dir(store.bench.dir.path().join("cache")).unwrap().flatten();
    assert_eq!(cached.filter(|entry| entry.path().is_dir()).count(), 1);

    let text = store.fail(&["inspect", &store.address("nowhere")], 2);
    assert!(text.contains("no dataset.json or partition.json among 0 objects"), "{text}");
}
