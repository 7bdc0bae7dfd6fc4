//! `gnarl infer` of runs on parts, whose dataset is gone: ids and class names as given.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{fail, path, succeed};

/// A table of people in four groups who know mostly each other, by name, and a run file.
fn graph(dir: &Path) -> PathBuf {
    let mut nodes = String::from("id,group,x,y\n");
    let mut edges = String::from("src,dst\n");
    let name = |person: usize| format!("p-{}", person * 7919 % 400);
    for person in 0..400 {
        let group = person % 4;
        let x = (group % 2) as f64;
        let y = (group / 2) as f64;
        let noise = (person * 37 % 11) as f64 / 11.0;
        _ = writeln!(nodes, "{},group {group},{},{}", name(person), x + noise, y - noise);
        for step in [4, 8, 12, 5] {
            _ = writeln!(edges, "{},{}", name(person), name((person + step) % 400));
        }
    }
    for (file, text) in [("nodes.csv", nodes), ("edges.csv", edges)] {
        std::fs::write(dir.join(file), text).unwrap();
    }
    let out = dir.join("graph");
    let tables = ["nodes.csv", "edges.csv"].map(|name| dir.join(name));
    let words = ["--nodes", path(&tables[0]), "--edges", path(&tables[1])];
    let columns = ["--id", "id", "--label", "group", "--features", "x,y", "--symmetrize"];
    succeed(&[&["import", "csv"], &words[..], &columns, &["--out", path(&out)]].concat());
    let run = "[dataset.split]\ntrain = 0.5\nvalid = 0.2\ntest = 0.3\n[model]\nname = 'sage'\nhidden = 16\n\
               [embedding]\ndim = 8\n[sample]\nbatch_size = 100\nfanouts = [5, 5]\n[negatives]\ncount = 8\n\
               [train]\nepochs = 4\n";
    std::fs::write(dir.join("run.toml"), format!("[dataset]\npath = '{}'\n{run}", out.display()))
        .unwrap();
    out
}

/// Trains on parts that are made with the options `task`, and takes the dataset away.
fn trained(dir: &Path, sets: &[&str], task: &[&str]) -> String {
    let graph = graph(dir);
    let [parts, file, run] = ["parts", "run.toml", "run"].map(|name| dir.join(name));
    succeed(&[&["partition", path(&graph), "--parts", "3", "--out", path(&parts)], task].concat());
    let place = format!("partition.path={}", path(&parts));
    let out = format!("output.dir={}", path(&run));
    let sets = [sets, &[&place, "partition.servers=ranks", &out]].concat();
    let words: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    succeed(&[&["train", path(&file)], &words[..]].concat());
    std::fs::rename(&graph, dir.join("elsewhere")).unwrap();
    path(&run).to_string()
}

/// Rows of a CSV file, without its header.
fn rows(file: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect()
}

/// Infers from the parts and from the whole dataset: texts are equal, numbers agree to rounding.
fn assert_alike(dir: &Path, run: &str, words: &[&str]) -> (Value, Vec<Vec<String>>) {
    let [on_parts, on_graph] = ["parts.csv", "graph.csv"].map(|name| dir.join(name));
    let found = succeed(&[&["infer", run, "--force", "--out", path(&on_parts)], words].concat());
    let elsewhere = dir.join("elsewhere");
    let dataset = ["--dataset", path(&elsewhere)];
    succeed(&[&["infer", run, "--force", "--out", path(&on_graph)], words, &dataset].concat());
    let [on_parts, on_graph] = [on_parts, on_graph].map(|file| rows(&file));
    assert!(!on_parts.is_empty());
    assert_eq!(on_parts.len(), on_graph.len());
    for (a, b) in on_parts.iter().flatten().zip(on_graph.iter().flatten()) {
        match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(x), Ok(y)) => assert!((x - y).abs() < 1e-4, "{a} {b}"),
            _ => assert_eq!(a, b),
        }
    }
    (found, on_parts)
}

#[test]
fn nodes_of_parts_have_ids_and_classes_as_given() {
    let dir = tempfile::tempdir().unwrap();
    let run = trained(dir.path(), &[], &["--hops", "1"]);
    let (found, rows) = assert_alike(dir.path(), &run, &[]);
    assert_eq!(found["nodes"], 400);
    assert!(rows.iter().all(|row| row[0].starts_with("p-") && row[1].starts_with("group ")));
    assert_alike(dir.path(), &run, &["--what", "embeddings,logits", "--split", "test"]);
    std::fs::write(dir.path().join("ids"), "p-7\np-300\n").unwrap();
    let ids = dir.path().join("ids");
    let (_, rows) = assert_alike(dir.path(), &run, &["--ids", path(&ids), "--ranks", "2"]);
    assert_eq!(rows.len(), 2);

    // Partitions of earlier versions have no catalog of nodes.
    std::fs::remove_dir_all(dir.path().join("parts/nodes")).unwrap();
    let out = dir.path().join("none.csv");
    let error = fail(&["infer", &run, "--out", path(&out)], 1);
    assert!(error.contains("has no labels") || error.contains("--dataset"), "{error}");
}

#[test]
fn edges_of_parts_are_scored_and_ranked_by_ids_as_given() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.toml");
    let links = ["task.kind=link-prediction"];
    let task = ["--task", path(&file), "--set", links[0]];
    let run = trained(dir.path(), &links, &task);
    let (_, rows) = assert_alike(dir.path(), &run, &["--edges", "test"]);
    assert!(rows.iter().all(|row| row[0].starts_with("p-") && row[1].starts_with("p-")));
    std::fs::write(dir.path().join("heads"), "p-7\np-300\n").unwrap();
    let heads = dir.path().join("heads");
    let best = ["--top-k", "3", "--heads", path(&heads), "--unknown"];
    let (_, rows) = assert_alike(dir.path(), &run, &best);
    assert_eq!(rows.len(), 6);
    let out = dir.path().join("all.csv");
    let error = fail(&["infer", &run, "--edges", "all", "--out", path(&out)], 2);
    assert!(error.contains("not on this host") && error.contains("--dataset"), "{error}");
    assert!(!out.exists());
}
