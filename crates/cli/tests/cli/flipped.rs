//! Single bits flipped in files that gnarl wrote: what would change a result is named.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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
    flip_in(&files(dir), times, seed, command)
}

/// Flips bits as [`flip`] does, in these files.
fn flip_in(
    files: &[PathBuf],
    times: u64,
    seed: u64,
    command: &dyn Fn() -> (Output, Option<Value>),
) -> u64 {
    let (_, expected) = command();
    assert!(expected.is_some(), "without a flip");
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
fn r6_flips_in_manifests_are_named_or_change_nothing() {
    let bench = Bench::new(RUN);
    let manifest = bench.graph.join("dataset.json");
    let failed = flip_in(&[manifest], 30, 5, &|| trained(&bench, &[]));
    assert!(failed > 27, "{failed} of 30");
}

#[test]
fn r6_flips_in_a_model_are_named_or_change_nothing() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let evaluated = || evaluated(&bench);
    flip(&bench.run, 30, 4, &evaluated);
    let settings = flip_in(&[bench.run.join("config.toml")], 20, 6, &evaluated);
    assert!(settings > 17, "{settings} of 20");
}

/// The scores of a run, evaluated anew.
fn evaluated(bench: &Bench) -> (Output, Option<Value>) {
    let output = gnarl().args(["eval", path(&bench.run)]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let scores = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
    (output, scores.map(|scores: Value| scores["test"].clone()))
}

#[test]
fn r6_every_flip_in_weights_is_named() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let file = bench.run.join("model.safetensors");
    let whole = std::fs::read(&file).unwrap();
    let (_, expected) = evaluated(&bench);
    let length = u64::from_le_bytes(whole[..8].try_into().unwrap());
    let mut numbers = Numbers(7);
    // In the weights, and in all that is before them.
    for (range, times) in [(8 + length..whole.len() as u64, 20), (0..8 + length, 20)] {
        for _ in 0..times {
            let place = (range.start + numbers.below(range.end - range.start)) as usize;
            let mut flipped = whole.clone();
            flipped[place] ^= 1 << numbers.below(8);
            std::fs::write(&file, &flipped).unwrap();
            let (output, found) = evaluated(&bench);
            let text = String::from_utf8_lossy(&output.stderr);
            let harmless = range.start == 0 && found == expected;
            let named = output.status.code() == Some(1)
                && text.contains("model.safetensors: the file is damaged")
                && text.contains("hint: ");
            assert!(harmless || named, "byte {place}: {text}");
        }
    }
    // Weights of other programs and of earlier versions have no checksum.
    let unsealed = whole.windows(7).position(|part| part == b"\"crc32\"").unwrap();
    let mut unsealed_file = whole.clone();
    unsealed_file[unsealed + 1] = b'k';
    std::fs::write(&file, unsealed_file).unwrap();
    assert_eq!(evaluated(&bench).1, expected);
}

#[test]
fn r6_flips_in_kept_rows_of_an_inference_are_named_or_change_nothing() {
    let bench = Bench::new(RUN);
    bench.train(&["model.hidden=1"]);
    let place = |name: &str| bench.dir.path().join(name);
    let out = place("out.csv");
    let layers = place("layers");
    let kept = place("kept");
    let args = ["infer", path(&bench.run), "--what", "logits", "--out", path(&out)];
    let args = [&args[..], &["--force", "--layers", path(&layers)]].concat();
    // The rows of the last layer are wider than those before it, and than files may be.
    let mut limited = Command::new("prlimit");
    limited.arg("--fsize=20000").arg(gnarl().get_program()).args(&args);
    let Ok(output) = limited.output() else {
        eprintln!("skipped: there is no prlimit here");
        return;
    };
    assert!(!output.status.success());
    std::fs::rename(&layers, &kept).unwrap();
    let rows = |path: &PathBuf| path.extension().is_some_and(|of| of == "rows");
    let recorded = files(&kept);
    assert!(recorded.iter().any(|path| path.ends_with("rank-0.json")), "{recorded:?}");
    let goes_on = || {
        drop(std::fs::remove_dir_all(&layers));
        let copied = Command::new("cp").arg("-r").args([&kept, &layers]).status().unwrap();
        assert!(copied.success());
        let output = gnarl().args(&args).output().unwrap();
        let found = output.status.success().then(|| std::fs::read_to_string(&out).unwrap());
        (output, found.map(Value::from))
    };
    let layer =
        recorded.iter().find(|path| rows(path) && path.to_string_lossy().contains("layer-1"));
    let failed = flip_in(&[layer.unwrap().clone()], 20, 8, &goes_on);
    assert_eq!(failed, 20, "every flip in the rows");
    let record = kept.join("last/rank-0.json");
    assert_eq!(flip_in(&[record], 20, 9, &goes_on), 20, "every flip in the record");
}
