//! `gnarl plan`

use crate::common::{community, fail, gnarl, path, succeed};

#[test]
fn predictions_stand_beside_what_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let words = ["plan", path(&graph), "--parts", "2,4", "--algorithms", "random,spring"];
    let result = succeed(&[&words[..], &["--check"]].concat());
    let predictions = result["predictions"].as_array().unwrap();
    assert_eq!(predictions.len(), 4);
    for p in predictions {
        // The sample is the whole graph here, so that its cut is the cut.
        let (predicted, measured) = (&p["edge_cut"], &p["measured"]["edge_cut"]);
        let ratio = predicted.as_f64().unwrap() / measured.as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 0.1, "{p}");
        assert!(p["epoch_bytes"].as_f64().unwrap() > 0.0 && p["fits"] == true, "{p}");
    }
    let small = succeed(&[&words[..], &["--memory", "1k", "--sample", "500"]].concat());
    assert_eq!(small["sample_nodes"], 500);
    assert!(small["predictions"].as_array().unwrap().iter().all(|p| p["fits"] == false));
}

#[test]
fn plans_are_tables_and_refuse_what_cannot_be() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let output = gnarl().args(["plan", path(&graph)]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for name in ["2000 nodes", "replication", "metis", "bytes/epoch"] {
        assert!(text.contains(name), "no '{name}' in:\n{text}");
    }
    assert!(fail(&["plan", path(&graph), "--algorithms", "mettis"], 2).contains("'metis'"));
    assert!(fail(&["plan", path(&graph), "--parts", "5000"], 2).contains("5000 parts"));
}
