//! Labels of edges from the command line: import, training, evaluation.

use std::fmt::Write;

use crate::common::{fail, path, run_file, succeed};

#[test]
fn labels_of_edges_are_imported_learnt_and_judged() {
    let dir = tempfile::tempdir().unwrap();
    let (mut nodes, mut edges) = ("id,x0,x1\n".to_string(), "src,dst,kind,part\n".to_string());
    for node in 0..40 {
        let x = if node % 2 == 0 { "1,0" } else { "0,1" };
        writeln!(nodes, "{node},{x}").unwrap();
        for step in 1..9 {
            let (other, part) = ((node + step) % 40, ["train", "test", "valid", "train"][step % 4]);
            let kind = if step % 2 == 0 { "even" } else { "odd" };
            writeln!(edges, "{node},{other},{kind},{part}").unwrap();
        }
    }
    let [edges_file, nodes_file, graph] =
        ["edges.csv", "nodes.csv", "graph"].map(|n| dir.path().join(n));
    std::fs::write(&edges_file, &edges).unwrap();
    std::fs::write(&nodes_file, nodes).unwrap();
    let import = |out: &std::path::Path| {
        let args = ["import", "csv", "--edges", path(&edges_file), "--nodes", path(&nodes_file)];
        let more = ["--features", "x*", "--edge-label", "kind", "--edge-split", "part", "--out"];
        [&args[..], &more, &[path(out)]].concat().into_iter().map(String::from).collect::<Vec<_>>()
    };
    let words = import(&graph);
    succeed(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let run = dir.path().join("run");
    let lines = format!(
        "[task]\nkind = 'edge-classification'\n[model]\nname = 'sage'\nlayers = 1\nhidden = 16\n\
         dropout = 0.0\n[embedding]\ndim = 16\n[decoder]\nhidden = 16\n[sample]\nfanouts = [5]\n\
         batch_size = 64\n[train]\nepochs = 60\neval_every = 20\n[output]\ndir = '{}'\n",
        run.display()
    );
    let file = run_file(dir.path(), &graph, &lines);
    let summary = succeed(&["train", path(&file)]);
    let accuracy = |value: &serde_json::Value| value["test"]["accuracy"].as_f64().unwrap();
    assert!(accuracy(&summary) > 0.9, "{summary}");
    let found = succeed(&["eval", path(&run)]);
    assert_eq!(accuracy(&found), accuracy(&summary));
    assert_eq!(found["leakage"]["train"]["seen"], 0, "{found}");
    let out = dir.path().join("labels.csv");
    let told = succeed(&["infer", path(&run), "--edges", "test", "--out", path(&out)]);
    assert_eq!(told["columns"], serde_json::json!(["head", "tail", "class", "probability"]));
    let text = std::fs::read_to_string(&out).unwrap();
    let right = |line: &&str| {
        let row: Vec<&str> = line.split(',').collect();
        let [head, tail] = [0, 1].map(|end: usize| row[end].parse::<usize>().unwrap());
        row[2] == if (tail + 40 - head) % 40 % 2 == 0 { "even" } else { "odd" }
    };
    let shares =
        text.lines().skip(1).filter(right).count() as f64 / text.lines().skip(1).count() as f64;
    assert!((shares - accuracy(&summary)).abs() < 1e-6, "{shares}");
    let sets = ["--set", "train.strategy=average", "--set", "partition.parts=2"];
    let averaged = succeed(&[&["train", path(&file), "--restart"][..], &sets].concat());
    assert!(accuracy(&averaged) > 0.8, "{averaged}");
    std::fs::write(&edges_file, edges.replacen("train", "trian", 1)).unwrap();
    let words = import(&dir.path().join("bad"));
    let error = fail(&words.iter().map(String::as_str).collect::<Vec<_>>(), 1);
    assert!(error.contains("edges.csv: line 4") && error.contains("'trian'"), "{error}");
}
