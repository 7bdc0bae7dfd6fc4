//! Graphs with types and link prediction, from files to scores.

use std::path::{Path, PathBuf};

use crate::common::{fail, path, run_file, succeed};

/// A folder of text files.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.at(name), text).unwrap();
        self.at(name)
    }

    /// Papers of two topics, which their words tell, and the authors who wrote them.
    fn tables(&self) -> PathBuf {
        let mut papers = "id,word,year,topic\n".to_string();
        let mut writes = "author,paper\n".to_string();
        for paper in 0..120 {
            let topic = paper % 2;
            let label = ["graphs", "proteins"][topic];
            papers += &format!("p{paper},{},{},{label}\n", paper % 7 + topic, 2000 + paper % 20);
            for author in [topic * 20 + paper % 19, topic * 20 + paper % 13] {
                writes += &format!("a{author},p{paper}\n");
            }
        }
        let authors: String = (0..39).map(|author| format!("a{author}\n")).collect();
        self.write("authors.csv", &format!("name\n{authors}"));
        self.write("papers.csv", &papers);
        self.write("writes.csv", &writes);
        self.write(
            "graph.json",
            r#"{ "nodes": [
                   { "node_type": "paper", "files": "papers.csv", "node_id_col": "id",
                     "features": [{ "feature_col": "word" },
                                  { "feature_col": "year", "transform": { "name": "standard" } }],
                     "labels": [{ "label_col": "topic", "task_type": "classification",
                                  "split_pct": [0.5, 0.25, 0.25] }] },
                   { "node_type": "author", "files": "authors.csv", "node_id_col": "name" }],
                 "edges": [
                   { "relation": ["author", "writes", "paper"], "files": "writes.csv",
                     "source_id_col": "author", "dest_id_col": "paper" }] }"#,
        )
    }

    fn run(&self, dataset: &Path, rest: &str) -> PathBuf {
        let out = self.at("run");
        run_file(self.0.path(), dataset, &format!("{rest}\n[output]\ndir = '{}'", out.display()))
    }
}

const RGCN: &str = "[task]
node_type = 'paper'
[model]
name = 'rgcn'
hidden = 8
[sample]
fanouts = [5, 5]
[train]
epochs = 80
threads = 1
";

#[test]
fn tables_of_a_schema_are_learnt_by_both_strategies() {
    let files = Files::new();
    let (schema, graph) = (files.tables(), files.at("graph"));
    let made = succeed(&["import", "schema", path(&schema), "--reverse", "--out", path(&graph)]);
    assert_eq!((made["nodes"].as_u64(), made["edges"].as_u64()), (Some(159), Some(480)));
    let manifest = std::fs::read_to_string(graph.join("dataset.json")).unwrap();
    assert!(manifest.contains("paper:rev_writes:author"), "{manifest}");
    let file = files.run(&graph, RGCN);
    let found = succeed(&["train", path(&file), "--restart"]);
    assert!(found["test"]["accuracy"].as_f64().unwrap() > 0.9, "{found}");
    let judged = succeed(&["eval", path(&files.at("run"))]);
    assert_eq!(judged["test"]["accuracy"], found["test"]["accuracy"]);
    let parts = ["--set", "train.strategy=average", "--set", "partition.parts=2"];
    let args = [&["train", path(&file), "--restart"], &parts[..]].concat();
    let apart = succeed(&args);
    assert!(apart["test"]["accuracy"].as_f64().unwrap() > 0.9, "{apart}");
}

#[test]
fn a_meta_path_that_leads_nowhere_is_refused() {
    let files = Files::new();
    let (schema, graph) = (files.tables(), files.at("graph"));
    succeed(&["import", "schema", path(&schema), "--out", path(&graph)]);
    let wrong = RGCN.replace("fanouts", "meta_path = ['paper:cites:paper']\nfanouts");
    let file = files.run(&graph, &wrong.replace("[5, 5]", "[5]").replace("8\n", "8\nlayers = 1\n"));
    let text = fail(&["train", path(&file)], 2);
    assert!(text.contains("unknown edge type 'paper:cites:paper'"), "{text}");
}

#[test]
fn triples_are_edge_types_if_asked_for() {
    let files = Files::new();
    let triples = files.at("triples.npy");
    let dict = "{'descr': '<i8', 'fortran_order': False, 'shape': (4, 3), }";
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{dict:<117}\n").bytes());
    let rows: [i64; 12] = [0, 0, 1, 1, 0, 2, 2, 1, 0, 0, 1, 2];
    bytes.extend(rows.iter().flat_map(|x| x.to_le_bytes()));
    std::fs::write(&triples, bytes).unwrap();
    let names = files.write("names.txt", "knows\nlikes\n");
    let given = format!("person={}", triples.display());
    let out = files.at("graph");
    let words =
        ["import", "npy", "--triples", &given, "--relations", path(&names), "--out", path(&out)];
    let made = succeed(&words);
    assert_eq!((made["nodes"].as_u64(), made["edges"].as_u64()), (Some(3), Some(4)));
    let manifest = std::fs::read_to_string(out.join("dataset.json")).unwrap();
    for name in ["person:knows:person", "person:likes:person"] {
        assert!(manifest.contains(name), "{manifest}");
    }
}

/// Twelve persons in a ring, who know their neighbors.
fn ring(files: &Files) -> PathBuf {
    let lines = |from: usize, to: usize| -> String {
        let knows = |i: usize| format!("p{i}\tknows\tp{}\n", (i + 1) % 12);
        let known = |i: usize| format!("p{}\tknown_by\tp{i}\n", (i + 1) % 12);
        (from..to).map(|i| knows(i) + &known(i)).collect()
    };
    let (train, test) =
        (files.write("train.txt", &lines(0, 10)), files.write("test.txt", &lines(10, 12)));
    let out = files.at("graph");
    succeed(&[
        "import",
        "triples",
        "--train",
        path(&train),
        "--test",
        path(&test),
        "--out",
        path(&out),
    ]);
    out
}

#[test]
fn triples_are_ranked_with_and_without_an_encoder() {
    let files = Files::new();
    let graph = ring(&files);
    for (model, metric) in [("none", "mrr"), ("rgcn", "roc_auc")] {
        let file = files.run(
            &graph,
            &format!(
                "[task]\nkind = 'link-prediction'\nleakage = 'keep'\n[model]\nname = '{model}'\n\
                 hidden = 8\n[decoder]\nname = 'distmult'\n[embedding]\ndim = 8\n\
                 [sample]\nfanouts = [3, 3]\nbatch_size = 4\n[negatives]\ncount = 4\n\
                 [train]\nepochs = 2\nthreads = 1\nworkers = 2"
            ),
        );
        let found = succeed(&["train", path(&file), "--restart"]);
        let score = found["test"][metric].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&score), "{model}: {found}");
        let judged = succeed(&["eval", path(&files.at("run"))]);
        assert!((judged["test"][metric].as_f64().unwrap() - score).abs() < 1e-6, "{model}");
    }
}

#[test]
fn an_unknown_decoder_lists_the_known_ones() {
    let files = Files::new();
    let graph = ring(&files);
    let rest =
        "[task]\nkind = 'link-prediction'\n[model]\nname = 'none'\n[decoder]\nname = 'transh'";
    let text = fail(&["train", path(&files.run(&graph, rest))], 2);
    assert!(text.contains("transh") && text.contains("distmult"), "{text}");
}
