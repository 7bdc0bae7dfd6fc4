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

#[test]
fn vertex_cuts_are_written_and_described() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    let cut = ["partition", path(&graph), "--algorithm", "hdrf", "--parts", "3"];
    let cut = [&cut[..], &["--layout", "vertex-cut"]].concat();
    let dry = succeed(&[&cut[..], &["--dry-run"]].concat());
    let written = succeed(&[&cut[..], &["--buckets", "--out", path(&parts)]].concat());
    for key in ["part_sizes", "halo_sizes", "edge_cut", "edge_balance"] {
        assert_eq!(dry[key], written[key], "{key}");
    }
    assert_eq!(dry["vertex_cut"]["part_edges"], written["vertex_cut"]["part_edges"]);
    let inspected = succeed(&["inspect", path(&parts), "--verify"]);
    let part_edges = written["vertex_cut"]["part_edges"].as_array().unwrap();
    let mut edges = 0;
    for (part, expected) in inspected["parts"].as_array().unwrap().iter().zip(part_edges) {
        assert_eq!(&part["topology"]["edges"], expected);
        assert!(part["topology"]["bytes_per_edge"].as_f64().unwrap() > 8.0);
        edges += expected.as_u64().unwrap();
    }
    assert_eq!(inspected["buckets"]["edges"].as_u64(), Some(edges));
    assert_eq!(inspected["partition"]["layout"], "vertex-cut");
    let one = succeed(&["inspect", path(&parts.join("part-1"))]);
    assert_eq!(one["topology"], inspected["parts"][1]["topology"]);
}

#[test]
fn impossible_vertex_cuts_are_usage_errors() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    let refuse = |options: &[&str]| {
        let cut = ["partition", path(&graph), "--out", path(&parts)];
        fail(&[&cut[..], options].concat(), 2)
    };
    let layout = ["--layout", "vertex-cut", "--parts"];
    let text = refuse(&[&layout[..], &["2"]].concat());
    assert!(text.contains("'knot' is a vertex partitioner"), "{text}");
    assert!(
        text.contains("hash-1d") && text.contains("2ps-l") && text.contains("adadne"),
        "{text}"
    );
    let text = refuse(&[&layout[..], &["2x2", "--algorithm", "dbh"]].concat());
    assert!(text.contains("two levels"), "{text}");
    let text = refuse(&[&layout[..], &["2", "--algorithm", "dbh", "--hops", "2"]].concat());
    assert!(text.contains("--hops"), "{text}");
    let text = refuse(&["--layout", "vertexcut", "--parts", "2"]);
    assert!(text.contains("edge-cut, vertex-cut"), "{text}");
    refuse(&["--dry-run", "--buckets", "--parts", "2"]);
    assert!(!parts.exists());
}

#[test]
fn truncated_topology_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let graph = community(dir.path());
    let parts = dir.path().join("parts");
    let cut = ["partition", path(&graph), "--algorithm", "dbh", "--parts", "2", "--buckets"];
    succeed(&[&cut[..], &["--layout", "vertex-cut", "--out", path(&parts)]].concat());
    let shorten = |file: &str| {
        let file = std::fs::File::options().write(true).open(parts.join(file)).unwrap();
        file.set_len(file.metadata().unwrap().len() - 4).unwrap();
    };
    shorten("buckets/0.dst.npy");
    let text = fail(&["inspect", path(&parts)], 1);
    assert!(text.contains("0.dst.npy: truncated"), "{text}");
    shorten("part-1/topology/in.src.npy");
    let text = fail(&["inspect", path(&parts)], 1);
    assert!(text.contains("part-1/topology/in.src.npy: truncated"), "{text}");
}
