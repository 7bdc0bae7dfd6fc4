//! Edges as of their times, from tables to scores: `gnarl import`, `partition --task`, `train`, `eval`, `infer`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::common::{fail, gnarl, path, succeed};

/// People who write to each other on days, in the order of days.
fn messages(dir: &Path) -> PathBuf {
    let mut nodes = String::from("id,x,y\n");
    for person in 0..200 {
        _ = writeln!(nodes, "p{person},{},{}", person % 5, person % 7);
    }
    let mut edges = String::from("src,dst,time\n");
    for number in 0..3000usize {
        let from = number * 7919 % 200;
        let to = (from + 5 * (1 + number % 3)) % 200;
        let (month, day) = (1 + number / 250, 1 + number % 250 / 9);
        _ = writeln!(edges, "p{from},p{to},2024-{month:02}-{day:02}");
    }
    for (file, text) in [("nodes.csv", nodes), ("edges.csv", edges)] {
        std::fs::write(dir.join(file), text).unwrap();
    }
    let out = dir.join("graph");
    let tables = ["nodes.csv", "edges.csv"].map(|name| dir.join(name));
    let words = ["--nodes", path(&tables[0]), "--edges", path(&tables[1]), "--features", "x,y"];
    succeed(&[&["import", "csv"], &words[..], &["--out", path(&out)]].concat());
    out
}

const RUN: &str = "[task]\nkind = 'link-prediction'\n[model]\nname = 'sage'\nhidden = 8\n[embedding]\ndim = 8\n\
    [decoder]\nname = 'dot'\n[negatives]\nkind = 'uniform'\ncount = 3\n[sample]\ntime = 'last'\nfanouts = [4, 2]\n\
    batch_size = 500\n[train]\nepochs = 2\n[evaluate]\ncandidates = 10\n";

struct Bench {
    dir: tempfile::TempDir,
    file: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let graph = messages(dir.path());
        let file = crate::common::run_file(dir.path(), &graph, RUN);
        Self { dir, file }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn words<'a>(&'a self, sets: &[&'a str]) -> Vec<&'a str> {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        ["train", path(&self.file)].into_iter().chain(sets).collect()
    }
}

fn scores(file: &Path) -> Vec<(String, f64)> {
    let text = std::fs::read_to_string(file).unwrap();
    let row = |line: &str| {
        let (edge, score) = line.rsplit_once(',').unwrap();
        (edge.to_string(), score.parse().unwrap())
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn links_are_predicted_in_time_on_whole_graphs_and_on_parts() {
    let bench = Bench::new();
    let out = format!("output.dir={}", path(&bench.path("run")));
    let whole = succeed(&bench.words(&[&out]));
    assert!(whole["test"]["roc_auc"].as_f64() > Some(0.0) && whole["test"]["mrr"].is_f64());
    let found = succeed(&["eval", path(&bench.path("run"))]);
    let verdict = found["leakage"]["verdict"].as_str().unwrap();
    assert!(verdict.contains("edges before the one asked about only"), "{verdict}");

    let infer = |run: &str, name: &str, edges: &str| {
        let out = bench.path(name);
        succeed(&["infer", path(&bench.path(run)), "--edges", edges, "--out", path(&out)]);
        scores(&out)
    };
    let all = infer("run", "all.csv", "all");
    let test = infer("run", "test.csv", "test");
    // The latest edges are those of the test split, whole days of them, scored as of their times either way.
    assert!(all.len() == 3000 && (270..=300).contains(&test.len()), "{}", test.len());
    let near = |a: &[(String, f64)], b: &[(String, f64)]| {
        let same =
            |((a, x), (b, y)): (&(String, f64), &(String, f64))| a == b && (x - y).abs() < 1e-4;
        assert!(a.len() == b.len() && a.iter().zip(b).all(same), "{a:?} {b:?}");
    };
    near(&all[all.len() - test.len()..], &test);
    // Edges of a file come after all others.
    std::fs::write(bench.path("next"), "p3,p8\np4,p9\n").unwrap();
    let next = infer("run", "next.csv", path(&bench.path("next")));
    assert_eq!(next.len(), 2);

    let (graph, parts) = (bench.path("graph"), bench.path("parts"));
    let cut = ["partition", path(&graph), "--parts", "3", "--algorithm", "ldg"];
    succeed(&[&cut[..], &["--task", path(&bench.file), "--out", path(&parts)]].concat());
    let (place, out) = (
        format!("partition.path={}", path(&parts)),
        format!("output.dir={}", path(&bench.path("parted"))),
    );
    std::fs::rename(&graph, bench.path("elsewhere")).unwrap();
    let found = succeed(&bench.words(&[&out, &place, "partition.servers=ranks"]));
    let losses = |summary: &serde_json::Value| -> Vec<f64> {
        summary["losses"].as_array().unwrap().iter().map(|loss| loss.as_f64().unwrap()).collect()
    };
    let pairs = losses(&whole).into_iter().zip(losses(&found));
    assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-4), "{:?}", pairs.collect::<Vec<_>>());
    near(&infer("parted", "parted.csv", "test"), &test);
}

#[test]
fn settings_that_do_not_fit_times_are_told() {
    let bench = Bench::new();
    let out = format!("output.dir={}", path(&bench.path("run")));
    let refused = |sets: &[&str]| fail(&bench.words(&[sets, &[&out]].concat()), 2);
    let text = refused(&["negatives.kind=joint"]);
    assert!(text.contains("negatives.kind = 'joint'") && text.contains("'uniform'"), "{text}");
    let text = refused(&["train.metric=mrr", "evaluate.candidates=0"]);
    assert!(text.contains("evaluate.candidates"), "{text}");
    let text = refused(&["task.split_by=day"]);
    assert!(text.contains("split_by"), "{text}");
    let warned = gnarl()
        .args(bench.words(&["task.leakage=keep", "task.split_seed=3", &out]))
        .output()
        .expect("the binary starts");
    let text = String::from_utf8_lossy(&warned.stderr).into_owned();
    assert!(warned.status.success(), "{text}");
    assert!(text.contains("task.leakage") && text.contains("task.split_seed"), "{text}");
}
