//! Single bits flipped in files that gnarl wrote: what would change a result is named.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{Bench, gnarl, path, results, succeed};
use serde_json::Value;

/// Files below a folder, ascending.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { all.push(path) }
        }
    }
    all.sort();
    all
}

/// A sequence of numbers that is the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

/// Flips `times` bits one after the other in the files of `dir`, and runs `command` each time: it must fail with an error that
/// is no panic, or have the results of before. Returns how often it failed.
fn flip(dir: &Path, times: u64, seed: u64, command: &dyn Fn() -> (Output, Option<Value>)) -> u64 {
    let (_, expected) = command();
    assert!(expected.is_some(), "without a flip");
    let files = files(dir);
    let mut numbers = Numbers(seed);
    let mut failed = 0;
    for _ in 0..times {
        let file = &files[numbers.below(files.len() as u64) as usize];
        let whole = std::fs::read(file).unwrap();
        if whole.is_empty() {
            continue;
        }
        let place = numbers.below(whole.len() as u64) as usize;
        let bit = numbers.below(8);
        let mut flipped = whole.clone();
        flipped[place] ^= 1 << bit;
        std::fs::write(file, flipped).unwrap();
        let (output, found) = command();
        let text = String::from_utf8_lossy(&output.stderr);
        let what = format!("bit {bit} of byte {place} of {}", file.display());
        assert!(!text.contains("panicked"), "{what}: {text}");
        match output.status.code() {
            Some(0) => assert_eq!(found, expected, "{what} changed the results"),
            Some(1 | 2) => failed += 1,
            other => panic!("{what}: code {other:?}: {text}"),
        }
        std::fs::write(file, whole).unwrap();
    }
    failed
}

/// The results of training anew, but for the origin of the data.
fn trained(bench: &Bench, sets: &[&str]) -> (Output, Option<Value>) {
    let output = gnarl().args(bench.args(sets)).arg("--restart").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
    (output, summary.map(|summary: Value| results(&summary)))
}

const RUN: &str = "[train]\nepochs = 1\n";

#[test]
fn r6_flips_in_a_dataset_are_named_or_change_nothing() {
    let bench = Bench::new(RUN);
    let failed = flip(&bench.graph, 60, 1, &|| trained(&bench, &[]));
    assert!(failed > 20, "{failed} of 60");
}

#[test]
fn r6_flips_in_parts_are_named_or_change_nothing() {
    let bench = Bench::new(RUN);
    let parts = bench.dir.path().join("parts");
    succeed(&["partition", path(&bench.graph), "--parts", "2", "--out", path(&parts)]);
    let set = format!("partition.path={}", parts.display());
    let sets = [set.as_str(), "train.workers=2", "train.strategy=average"];
    let failed = flip(&parts, 40, 2, &|| trained(&bench, &sets));
    assert!(failed > 10, "{failed} of 40");
}

#[test]
fn r6_flips_in_buckets_are_named_or_change_nothing() {
    let bench = Bench::new(RUN);
    let parts = bench.dir.path().join("parts");
    let cut = ["partition", path(&bench.graph), "--parts", "4", "--out", path(&parts)];
    succeed(&[&cut[..], &["--layout", "storage"]].concat());
    let set = format!("partition.path={}", parts.display());
    let sets = [set.as_str(), "train.strategy=disaggregated", "disaggregated.resident=2"];
    let failed = flip(&parts, 40, 3, &|| trained(&bench, &sets));
    assert!(failed > 10, "{failed} of 40");
}

#[test]
fn r6_flips_in_a_model_are_named_or_change_nothing() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let evaluated = || {
        let output = gnarl().args(["eval", path(&bench.run)]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let scores = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
        (output, scores.map(|scores: Value| scores["test"].clone()))
    };
    flip(&bench.run, 30, 4, &evaluated);
}
