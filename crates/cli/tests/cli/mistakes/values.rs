//! Values of tables: missing numbers, booleans, dates, categories, labels and splits.

use std::path::Path;

use gnarl_graph::{DEFAULT_NODE_TYPE, DatasetWriter, FinishOptions, IdWidth, Triple};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{gnarl, path, run_file};

const EDGES: &str = "src,dst\na,b\nb,c\nc,d\nd,a\n";

/// An import of tables, and what it must say.
struct Case {
    what: &'static str,
    nodes: &'static str,
    edges: &'static str,
    args: &'static [&'static str],
    code: i32,
    /// Parts of its messages.
    says: &'static [&'static str],
}

impl Default for Case {
    fn default() -> Self {
        Self { what: "", nodes: "id\na\nb\nc\nd\n", edges: EDGES, args: &[], code: 0, says: &[] }
    }
}

/// Exit code, messages and result of a command.
fn run(args: &[&str]) -> (i32, String, Value) {
    let output = gnarl().args(args).output().expect("the binary starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(!err.contains("panicked"), "a panic on user input:\n{err}");
    let result = out.lines().last().and_then(|line| serde_json::from_str(line).ok());
    (output.status.code().unwrap_or(-1), err, result.unwrap_or_default())
}

fn check(case: &Case) -> Value {
    let dir = tempfile::tempdir().expect("a folder for tests");
    let (edges, nodes) = (dir.path().join("e.csv"), dir.path().join("n.csv"));
    std::fs::write(&edges, case.edges).expect("the test's folder is writable");
    std::fs::write(&nodes, case.nodes).expect("the test's folder is writable");
    let out = dir.path().join("out");
    let files = ["import", "csv", "--edges", path(&edges), "--nodes", path(&nodes)];
    let (code, err, result) = run(&[&files, case.args, &["--out", path(&out)]].concat());
    assert_eq!(code, case.code, "{}:\n{err}", case.what);
    for part in case.says {
        assert!(err.contains(part), "{}: no '{part}' in:\n{err}", case.what);
    }
    assert_eq!(out.exists(), code == 0, "{}", case.what);
    result
}

#[test]
fn features_that_are_no_plain_numbers() {
    let cases = [
        Case {
            what: "a missing feature",
            nodes: "id,x\na,1\nb,\nc,2\nd,3\n",
            args: &["--features", "x"],
            code: 1,
            says: &["n.csv: line 3: column 'x': the feature is missing", "--impute mean"],
            ..Case::default()
        },
        Case {
            what: "a missing feature that is filled in",
            nodes: "id,x\na,1\nb,\nc,2\nd,3\n",
            args: &["--features", "x", "--impute", "median", "--impute-indicator"],
            says: &["column 'x': 1 of 4 values are missing, the median 2 is used"],
            ..Case::default()
        },
        Case {
            what: "an unknown way to fill in",
            args: &["--impute", "avg"],
            code: 2,
            says: &["invalid value 'avg'", "mean, median or a number"],
            ..Case::default()
        },
        Case {
            what: "text in a column of numbers",
            nodes: "id,x1\na,1\nb,hello\nc,2\nd,3\n",
            args: &["--features", "x*"],
            code: 1,
            says: &["n.csv: line 3: column 'x1': 'hello' is not a number"],
            ..Case::default()
        },
        Case {
            what: "booleans and dates",
            nodes: "id,premium,joined\na,True,2025-05-03\nb,False,2024-01-01\nc,True,\nd,False,2020-02-29\n",
            args: &["--features", "premium,joined", "--impute", "mean"],
            says: &["column 'joined': 1 of 4 values are missing"],
            ..Case::default()
        },
        Case {
            what: "a category as a number",
            nodes: "id,country\na,de\nb,fr\nc,de\nd,it\n",
            args: &["--features", "country"],
            code: 1,
            says: &["n.csv: column 'country' holds text such as 'de'", "--categorical country"],
            ..Case::default()
        },
        Case {
            what: "a category with a missing value",
            nodes: "id,country\na,de\nb,\nc,de\nd,it\n",
            args: &["--categorical", "country"],
            says: &["column 'country': 2 categories; 1 of 4 rows have none, all 0"],
            ..Case::default()
        },
        Case {
            what: "a column with two transforms",
            nodes: "id,x\na,1\nb,2\nc,3\nd,4\n",
            args: &["--standardize", "x", "--min-max", "x"],
            code: 2,
            says: &["column 'x' has two transforms"],
            ..Case::default()
        },
        Case {
            what: "dates as edge times",
            edges: "src,dst,when\na,b,2025-05-03\nb,c,2025-05-04T10:00:00Z\n",
            args: &["--time", "when"],
            ..Case::default()
        },
        Case {
            what: "no dates as edge times",
            edges: "src,dst,when\na,b,2025-05-03\nb,c,tomorrow\n",
            args: &["--time", "when"],
            code: 1,
            says: &["e.csv: line 3: column 'when': 'tomorrow' is not a date"],
            ..Case::default()
        },
        Case {
            what: "an empty weight",
            edges: "src,dst,weight\na,b,1\nb,c,\n",
            code: 1,
            says: &["e.csv: line 3: column 'weight': the value is missing"],
            ..Case::default()
        },
        Case {
            what: "integer ids of nodes, text in edges",
            nodes: "id\n1\n2\n",
            edges: "src,dst\n1,a\n",
            code: 1,
            says: &[
                "e.csv: column 'dst' has ids that are no integers",
                "n.csv are, the first is 1",
            ],
            ..Case::default()
        },
    ];
    cases.iter().for_each(|case| drop(check(case)));
}

#[test]
fn labels_and_splits() {
    let cases = [
        Case {
            what: "classes as floating-point numbers",
            nodes: "id,label\na,0.0\nb,1.0\nc,0.0\nd,1.0\n",
            ..Case::default()
        },
        Case {
            what: "labels that are no classes",
            nodes: "id,label\na,0\nb,0.5\nc,0\nd,1\n",
            code: 1,
            says: &["n.csv: line 3: label 0.5 is not a class"],
            ..Case::default()
        },
        Case {
            what: "names among numbers",
            nodes: "id,label\na,0\nb,cat\nc,0\nd,1\n",
            code: 1,
            says: &["n.csv: line 3: column 'label': 'cat' is not a number"],
            ..Case::default()
        },
        Case {
            what: "a split by another name that none reads",
            nodes: "id,label,split\na,0,train\nb,1,holdout\nc,0,holdout\nd,1,test\n",
            says: &["split 'holdout' is stored but no run uses it (2 nodes)", "train, valid, test"],
            ..Case::default()
        },
        Case {
            what: "unused classes",
            nodes: "id,label\na,0\nb,1\nc,4\nd,2\n",
            says: &["1 of 5 classes are on none of the nodes: 3"],
            ..Case::default()
        },
    ];
    cases.iter().for_each(|case| drop(check(case)));

    let result = check(&Case {
        what: "nodes in splits without a label",
        nodes: "id,label,split\na,0,train\nb,,train\nc,nan,train\nd,1,test\n",
        says: &["2 of 3 train nodes have no label and are left out"],
        ..Case::default()
    });
    let expected = serde_json::json!([
        { "type": "_N", "split": "train", "unlabeled": 2, "of": 3 }
    ]);
    assert_eq!(result["left_out"], expected);

    let gaps = Case {
        what: "class ids with gaps",
        nodes: "id,label\na,10\nb,77\nc,1000\nd,10\n",
        says: &["gaps: 10, 77, 1000 are stored as 0 to 2", "class_name"],
        ..Case::default()
    };
    assert_eq!(check(&gaps)["renumbered_classes"], serde_json::json!(["_N"]));
    let kept = Case { args: &["--num-classes", "1001"], says: &[], ..gaps };
    assert_eq!(check(&kept)["renumbered_classes"], serde_json::json!([]));
}

/// Trains on a dataset for two epochs.
fn train(dir: &Path, dataset: &Path) -> (i32, String, Value) {
    train_model(dir, dataset, "name = 'sage'")
}

fn train_model(dir: &Path, dataset: &Path, model: &str) -> (i32, String, Value) {
    let rest = format!(
        "[model]\n{model}\nhidden = 4\n[sample]\nfanouts = [2, 2]\nbatch_size = 4\n\
         [train]\nepochs = 2\n"
    );
    let file = run_file(dir, dataset, &rest);
    let out = format!("output.dir={}", dir.join("run").display());
    run(&["train", path(&file), "--restart", "--set", &out])
}

#[test]
fn splits_by_usual_names_are_trained_and_judged_by() {
    let dir = tempfile::tempdir().expect("a folder for tests");
    let import = |split: &str, name: &str| {
        let nodes =
            format!("id,x,label,split\na,1,0,Train\nb,2,1,train\nc,3,0,{split}\nd,4,1,TEST\n");
        let (edges, table) = (dir.path().join("e.csv"), dir.path().join("n.csv"));
        std::fs::write(&edges, EDGES).expect("the test's folder is writable");
        std::fs::write(&table, nodes).expect("the test's folder is writable");
        let out = dir.path().join(name);
        let files = ["import", "csv", "--edges", path(&edges), "--nodes", path(&table)];
        let (code, err, _) = run(&[&files[..], &["--features", "x", "--out", path(&out)]].concat());
        assert_eq!(code, 0, "{err}");
        out
    };
    let (code, err, result) = train(dir.path(), &import("val", "named"));
    assert_eq!(code, 0, "{err}");
    assert!(!err.contains("the last epoch counts as best"), "{err}");
    assert!(result["valid"]["accuracy"].is_number() && result["test"]["accuracy"].is_number());

    let (code, err, _) = train(dir.path(), &import("", "without"));
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("no nodes in 'valid': the last epoch counts as best"), "{err}");
    assert!(!err.contains("(valid )") && err.contains("(no valid scores)"), "{err}");
}

/// A dataset as older versions made them: nodes without a label are in splits.
fn older(dir: &TempDir, classes: &[i32]) -> std::path::PathBuf {
    let out = dir.path().join("older");
    let mut writer = DatasetWriter::create(&out, IdWidth::U32).unwrap();
    let count = classes.len() as u64;
    writer.add_node_type(DEFAULT_NODE_TYPE, count);
    let mut label = writer.node_column::<i32>(DEFAULT_NODE_TYPE, "label", &[]).unwrap();
    label.push(classes).unwrap();
    let mut features = writer.node_column::<f32>(DEFAULT_NODE_TYPE, "features", &[1]).unwrap();
    features.push(&vec![0.5; classes.len()]).unwrap();
    let columns = [label.finish().unwrap(), features.finish().unwrap()];
    let node_type = writer.node_type(DEFAULT_NODE_TYPE).unwrap();
    node_type.columns.extend(columns);
    node_type.classes = Some(2);
    writer.add_split(DEFAULT_NODE_TYPE, "train", vec![0, 1, 2]).unwrap();
    writer.add_split(DEFAULT_NODE_TYPE, "valid", vec![3]).unwrap();
    let mut edges = writer.edge_writer(&Triple::plain(), Some((count, count))).unwrap();
    edges.push(&[0, 1, 2], &[1, 2, 3]).unwrap();
    writer.add_edge_type(Triple::plain(), edges.finish().unwrap());
    writer.finish(FinishOptions::default()).unwrap();
    out
}

#[test]
fn datasets_with_unlabeled_nodes_in_splits_are_trained_on_the_others() {
    let dir = tempfile::tempdir().expect("a folder for tests");
    let (code, err, _) = train(dir.path(), &older(&dir, &[0, -1, 1, 1]));
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("older: 1 of 3 train nodes have no label and are left out"), "{err}");
    std::fs::remove_dir_all(dir.path().join("older")).expect("made above");
    let (code, err, _) = train(dir.path(), &older(&dir, &[-1, -1, -1, 1]));
    assert_eq!(code, 1, "{err}");
    let parts = ["older: no training nodes", "no node in split 'train' has a label"];
    assert!(parts.iter().all(|part| err.contains(part)), "{err}");
}

#[test]
fn schemas_symmetrize_and_the_only_labeled_type_is_classified() {
    let dir = tempfile::tempdir().expect("a folder for tests");
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("the test's folder is writable");
        path
    };
    write("n.csv", "id,x,label,split\na,1,0,train\nb,2,1,train\nc,3,0,dev\nd,4,1,test\n");
    write("e.csv", EDGES);
    let schema = r#"{ "nodes": [{ "node_type": "user", "files": "n.csv", "node_id_col": "id",
        "features": [{ "feature_col": "x" }],
        "labels": [{ "label_col": "label", "task_type": "classification" }] }],
      "edges": [{ "relation": ["user", "knows", "user"], "files": "e.csv", "source_id_col": "src",
        "dest_id_col": "dst" }] }"#;
    let file = write("graph.json", schema);
    let import = |flag: &str| {
        let out = dir.path().join(flag.trim_start_matches('-'));
        let (code, err, result) =
            run(&["import", "schema", path(&file), flag, "--out", path(&out)]);
        assert_eq!(code, 0, "{err}");
        (out, result)
    };
    let (out, result) = import("--symmetrize");
    assert_eq!(result["symmetric"], true);
    assert_eq!(train(dir.path(), &out).0, 0);
    let (out, _) = import("--reverse");
    let model = "name = 'hetero'\nrelation_layer = 'sage'";
    let (code, err, _) = train_model(dir.path(), &out, model);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("'user' is the only node type with labels"), "{err}");
}
