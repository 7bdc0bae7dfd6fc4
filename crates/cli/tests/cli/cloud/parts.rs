//! Parts in a store, brought into memory in turns.

use std::path::PathBuf;
use std::process::Output;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;

use super::moto::Moto;
use super::proxy::Proxy;
use crate::common::{Bench, files, gnarl, path, results, succeed};

const RUN: &str = "[train]\nepochs = 3\nstrategy = \"disaggregated\"\n\
                   [disaggregated]\nresident = 2\n";

/// A run on parts of layout `storage`, two of six in memory.
struct Parts {
    bench: Bench,
    dir: PathBuf,
}

impl Parts {
    fn new() -> Self {
        let bench = Bench::new(RUN);
        let dir = bench.dir.path().join("parts");
        let cut = ["partition", path(&bench.graph), "--parts", "6", "--layout", "storage"];
        succeed(&[&cut[..], &["--out", path(&dir)]].concat());
        Self { bench, dir }
    }

    /// Words that train on the parts at `place`.
    fn args(&self, place: &str) -> Vec<String> {
        let set = format!("partition.path={place}");
        self.bench.args(&[&set]).into_iter().map(str::to_string).collect()
    }

    fn cache(&self) -> PathBuf {
        self.bench.dir.path().join("cache")
    }

    fn train(&self, place: &str) -> Output {
        gnarl().args(self.args(place)).env("GNARL_CACHE", self.cache()).output().unwrap()
    }
}

#[test]
fn parts_in_a_store_train_as_parts_in_files() {
    let parts = Parts::new();
    let expected = parts.bench.train(&[&format!("partition.path={}", path(&parts.dir))]);
    let address = format!("file://{}", path(&parts.dir));
    let output = parts.train(&address);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let out = String::from_utf8_lossy(&output.stdout);
    let found: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(results(&found), results(&expected));
    // Parts and edges have not been fetched.
    let cached = files(&parts.cache());
    assert!(cached.contains(&"partition.json".to_string()), "{cached:?}");
    for end in ["features.npy", ".src.npy", ".dst.npy", "orig_id.npy", "new_id.npy"] {
        assert!(!cached.iter().any(|name| name.ends_with(end)), "{cached:?}");
    }
}

#[test]
fn damaged_and_missing_objects_are_named() {
    let parts = Parts::new();
    let address = format!("file://{}", path(&parts.dir));
    let file = parts.dir.join("part-3/_N.features.npy");
    let whole = std::fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    std::fs::write(&file, flipped).unwrap();
    let fails = |wanted: &str| {
        let output = parts.train(&address);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(wanted), "{text}");
        assert!(text.contains("reading part 3 into memory"), "{text}");
    };
    fails("_N.features.npy: checksum differs");
    std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    fails("part-3/_N.features.npy: another size than in dataset.json");
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    fails("part-3/_N.features.npy: truncated");
    std::fs::remove_file(&file).unwrap();
    fails("part-3/_N.features.npy: there is no such object");
}

#[test]
fn an_epoch_goes_on_when_the_store_was_cut_off() {
    let Some(moto) = Moto::start() else { return };
    let parts = Parts::new();
    let expected = parts.bench.train(&[&format!("partition.path={}", path(&parts.dir))]);
    moto.put_folder(&parts.dir, "bucket/parts");
    let words = parts.args("s3://bucket/parts");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let dir = parts.bench.dir.path();
    let found = moto.succeed(&words, dir);
    assert_eq!(results(&found), results(&expected));

    // Requests of the listing and of small files come before, some of parts as well.
    let proxy = Proxy::to(moto.port(), 24, Duration::from_secs(10));
    let (found, text) = moto.succeed_by(proxy.port, &words, dir);
    assert_eq!(results(&found), results(&expected));
    assert!(proxy.refused.load(Ordering::SeqCst) > 0, "{text}");
    assert!(text.contains("trying again in"), "{text}");
}
