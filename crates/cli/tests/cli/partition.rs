//! `gnarl partition`

use crate::common::{community, fail, path, succeed};

#[test]
fn a_dry_run_writes_nothing_and_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    let cut = ["partition", path(&graph), "--parts", "4"];
    let dry = succeed(&[&cut[..], &["--dry-run"]].concat());
    assert!(!parts.exists());
    let written = succeed(&[&cut[..], &["--out", path(&parts)]].concat());
    for key in ["edge_cut", "replication_factor", "part_sizes", "halo_sizes", "cut_degrees"] {
        assert!(!dry[key].is_null(), "no {key}");
        assert_eq!(dry[key], written[key], "{key}");
    }
    let page = std::fs::read_to_string(parts.join("report.html")).unwrap();
    assert!(page.contains("graph <span>in 4 parts") && page.contains("Nodes with edges between"));
    fail(&cut, 2);
    fail(&[&cut[..], &["--dry-run", "--out", path(&parts)]].concat(), 2);
}

#[test]
fn machines_come_before_workers() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    let cut = ["partition", path(&graph), "--algorithm", "range", "--out", path(&parts), "--parts"];
    let report = succeed(&[&cut[..], &["2x4"]].concat());
    assert_eq!(report["part_sizes"].to_string(), "[250,250,250,250,250,250,250,250]");
    let manifest = std::fs::read_to_string(parts.join("partition.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["parameters"]["levels"].to_string(), "[2,4]");
    assert!(fail(&[&cut[..], &["2x"]].concat(), 2).contains("2x4"));
}
