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
