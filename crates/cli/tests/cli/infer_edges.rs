//! `gnarl infer`: scores of edges, and the likeliest endpoints.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::common::{Bench, fail, path, run_file, succeed};

const ENTITIES: usize = 30;

/// A trained run over triples whose entities and relations have names.
struct Triples {
    dir: tempfile::TempDir,
    run: PathBuf,
    known: Vec<[String; 3]>,
}

impl Triples {
    fn new(model: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut known = Vec::new();
        for entity in 0..ENTITIES {
            for (relation, step) in [("likes", 1), ("knows", 7), ("likes", 3)] {
                let tail = (entity + step) % ENTITIES;
                known.push([format!("e{entity}"), relation.into(), format!("e{tail}")]);
            }
        }
        let file = |name: &str, triples: &mut dyn Iterator<Item = &[String; 3]>| {
            let mut text = String::new();
            triples.for_each(|triple| writeln!(text, "{}", triple.join("\t")).unwrap());
            std::fs::write(dir.path().join(name), text).unwrap();
            dir.path().join(name)
        };
        let train = file("train.tsv", &mut known.iter().filter(|t| t[0] != "e5"));
        let test = file("test.tsv", &mut known.iter().filter(|t| t[0] == "e5"));
        let graph = dir.path().join("graph");
        let import = ["import", "triples", "--train", path(&train), "--test", path(&test)];
        succeed(&[&import[..], &["--out", path(&graph)]].concat());
        let run = dir.path().join("run");
        let rest = format!(
            "[task]\nkind = 'link-prediction'\n{model}[embedding]\ndim = 8\n[decoder]\nname = 'distmult'\n\
             [negatives]\ncount = 4\n[sample]\nfanouts = [4]\nbatch_size = 32\n[train]\nepochs = 3\n\
             [output]\ndir = '{}'\n",
            run.display()
        );
        succeed(&["train", path(&run_file(dir.path(), &graph, &rest))]);
        Self { run, known, dir }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The header and the rows that an inference writes.
    fn infer(&self, name: &str, args: &[&str]) -> (Vec<String>, Vec<Vec<String>>) {
        let out = self.file(name);
        succeed(&[&["infer", path(&self.run), "--out", path(&out)], args].concat());
        table(&out)
    }
}

fn table(file: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = std::fs::read_to_string(file).unwrap();
    let cells = |line: &str| line.split(',').map(String::from).collect::<Vec<_>>();
    let mut lines = text.lines().map(cells);
    (lines.next().unwrap(), lines.collect())
}

#[test]
fn edges_are_scored_alike_however_they_are_asked_for() {
    for model in ["[model]\nname = 'none'\n", "[model]\nname = 'rgcn'\nlayers = 1\nhidden = 8\n"] {
        let bench = Triples::new(model);
        let (header, all) = bench.infer("all.csv", &["--edges", "all"]);
        assert_eq!(header, ["head", "relation", "tail", "score"]);
        let mut found: Vec<[String; 3]> =
            all.iter().map(|row| [0, 1, 2].map(|i| row[i].clone())).collect();
        let mut known = bench.known.clone();
        found.sort();
        known.sort();
        assert_eq!(found, known);
        let (_, test) = bench.infer("test.csv", &["--edges", "test"]);
        assert_eq!(test.len(), 3);
        assert!(test.iter().all(|row| row[0] == "e5"));
        let asked = bench.file("asked.tsv");
        let lines: Vec<String> = all.iter().rev().map(|row| row[..3].join("\t")).collect();
        std::fs::write(&asked, lines.join("\n")).unwrap();
        let args = ["--edges", path(&asked), "--memory", "64KiB"];
        let (_, again) = bench.infer("again.csv", &args);
        let scores = |rows: &[Vec<String>]| -> HashMap<String, f32> {
            rows.iter().map(|row| (row[..3].join(" "), row[3].parse().unwrap())).collect()
        };
        let (of_all, of_file) = (scores(&all), scores(&again));
        for (edge, score) in scores(&test).iter().chain(&of_file) {
            assert!((score - of_all[edge]).abs() < 1e-5, "{edge}");
        }
        assert_eq!(of_all.len(), of_file.len());
    }
}

#[test]
fn the_likeliest_endpoints_have_the_highest_scores() {
    let bench = Triples::new("[model]\nname = 'none'\n");
    let given = bench.file("given.txt");
    std::fs::write(&given, "e5\ne17\n").unwrap();
    // Scores of every pair with one of them, by their file.
    let pairs = bench.file("pairs.tsv");
    let lines = ["e5", "e17"].map(|one| {
        let all = (0..ENTITIES).map(|other| format!("{one}\te{other}\ne{other}\t{one}\n"));
        all.collect::<String>()
    });
    std::fs::write(&pairs, lines.concat()).unwrap();
    let (_, scored) = bench.infer("pairs.csv", &["--edges", path(&pairs), "--relation", "knows"]);
    let score = |head: &str, tail: &str| -> f32 {
        let row = scored.iter().find(|row| row[0] == head && row[2] == tail).unwrap();
        row[3].parse().unwrap()
    };
    for (side, column) in [("--heads", 0), ("--tails", 2)] {
        for unknown in [false, true] {
            let mut args = vec!["--top-k", "4", side, path(&given), "--relation", "knows"];
            args.extend(unknown.then_some("--unknown"));
            let (header, rows) = bench.infer(&format!("top{side}{unknown}.csv"), &args);
            assert_eq!(header, ["head", "relation", "tail", "score", "rank"]);
            assert_eq!(rows.len(), 8);
            for (one, rows) in ["e5", "e17"].iter().zip(rows.chunks(4)) {
                let edge = |other: &str| match column {
                    0 => [one.to_string(), "knows".into(), other.to_string()],
                    _ => [other.to_string(), "knows".into(), one.to_string()],
                };
                let others = (0..ENTITIES).map(|other| format!("e{other}"));
                let others = others.filter(|o| !unknown || !bench.known.contains(&edge(o)));
                let mut best: Vec<f32> =
                    others.map(|o| edge(&o)).map(|e| score(&e[0], &e[2])).collect();
                best.sort_by(|a, b| b.total_cmp(a));
                for (rank, row) in rows.iter().enumerate() {
                    assert_eq!(
                        (&row[column], row[4].as_str()),
                        (&one.to_string(), &*(rank + 1).to_string())
                    );
                    let found: f32 = row[3].parse().unwrap();
                    assert!((found - best[rank]).abs() < 1e-5, "{row:?}: {}", best[rank]);
                    assert!((found - score(&row[0], &row[2])).abs() < 1e-5, "{row:?}");
                }
            }
        }
    }
}

#[test]
fn impossible_requests_are_refused() {
    let bench = Triples::new("[model]\nname = 'none'\n");
    let out = bench.file("out.csv");
    let given = bench.file("given.txt");
    std::fs::write(&given, "e5\nnobody\n").unwrap();
    let asked = bench.file("asked.tsv");
    std::fs::write(&asked, "e1\tlikes\te2\ne1\n").unwrap();
    let infer = |args: &[&str], code| {
        fail(&[&["infer", path(&bench.run), "--out", path(&out)], args].concat(), code)
    };
    let heads = ["--top-k", "2", "--heads", path(&given)];
    assert!(infer(&heads, 2).contains("2 relations") && !out.exists());
    let text = infer(&[&heads[..], &["--relation", "like"]].concat(), 2);
    assert!(text.contains("unknown relation 'like'") && text.contains("likes"), "{text}");
    let text = infer(&[&heads[..], &["--relation", "likes"]].concat(), 1);
    assert!(text.contains("given.txt") && text.contains("nobody"), "{text}");
    assert!(infer(&["--top-k", "0", "--heads", path(&given)], 2).contains("--top-k"));
    assert!(infer(&["--top-k", "2"], 2).contains("--heads"));
    let text = infer(&["--edges", path(&asked)], 1);
    assert!(text.contains("asked.tsv: line 2") && text.contains("found 1"), "{text}");
    assert!(infer(&["--edges", "held-out"], 2).contains("no split and no file"));
    assert!(infer(&["--edges", "test", "--relation", "likes"], 2).contains("--relation likes"));
    assert!(infer(&["--edges", "test", "--what", "classes"], 2).contains("--what"));
    for option in ["--order=ds", "--cache=lru:1MiB", "--layers=rows"] {
        let text = infer(&["--edges", "test", option], 2);
        assert!(text.contains("the model 'none' has no layers"), "{option}: {text}");
    }
    assert!(!out.exists());
    let nodes = Bench::new("[train]\nepochs = 1\n");
    nodes.train(&[]);
    let infer = ["infer", path(&nodes.run), "--out", path(&out)];
    let text = fail(&[&infer[..], &["--edges", "all"]].concat(), 2);
    assert!(text.contains("predicts nodes"), "{text}");
    std::fs::write(&given, "5\n").unwrap();
    let text = fail(&[&infer[..], &heads].concat(), 2);
    assert!(text.contains("does not predict edges"), "{text}");
    let found = succeed(&infer);
    assert_eq!(found["columns"], json!(["id", "class", "probability"]));
}
