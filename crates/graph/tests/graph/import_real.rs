//! Real graphs, where the environment variable `GNARL_DATA` names their folder: counts agree with
//! what their publishers state.

use std::io::Write as _;
use std::path::Path;

use crate::common::Files;
use gnarl_graph::DEFAULT_NODE_TYPE;
use gnarl_graph::import::{NpyOptions, npy};

fn options(dir: &Path, meta: &serde_json::Value) -> NpyOptions {
    let existing = |name: &str| Some(dir.join(name)).filter(|p| p.exists());
    let split = |name: &str| Some((name.to_string(), existing(&format!("{name}_idx.npy"))?));
    NpyOptions {
        features: existing("features.npy").or_else(|| existing("features_csr.npz")),
        labels: existing("labels.npy"),
        num_classes: meta["num_classes"].as_u64(),
        splits: ["train", "valid", "test"].into_iter().filter_map(split).collect(),
        num_nodes: meta["num_nodes"].as_u64(),
        ..NpyOptions::new(dir.join("edges.npy"))
    }
}

#[test]
fn real_graphs_have_the_published_counts() {
    let Some(data) = std::env::var_os("GNARL_DATA") else {
        // Unlike `eprintln!`, this is seen though the test passes.
        let _ = writeln!(std::io::stderr(), "skipped: GNARL_DATA names no folder of graphs");
        return;
    };
    let mut seen = 0;
    for entry in std::fs::read_dir(data).unwrap() {
        let dir = entry.unwrap().path();
        if !dir.join("edges.npy").exists() {
            continue;
        }
        let text = std::fs::read_to_string(dir.join("meta.json")).unwrap();
        let meta: serde_json::Value = serde_json::from_str(&text).unwrap();
        let files = Files::new();
        let made = npy(&options(&dir, &meta), &files.out()).unwrap();
        let report = &made.report;
        for (name, found) in [
            ("num_nodes", report.nodes),
            ("num_edges", report.edges),
            ("self_loops", report.self_loops),
            ("duplicate_edges", report.duplicates),
        ] {
            assert_eq!(meta[name].as_u64(), Some(found), "{name} of {}", dir.display());
        }
        assert_eq!(meta["symmetric"].as_bool(), Some(report.symmetric), "{}", dir.display());
        let features = made.dataset.features(DEFAULT_NODE_TYPE).unwrap();
        assert_eq!(meta["num_features"].as_u64(), features.map(|f| f.width() as u64));
        for (name, _) in &options(&dir, &meta).splits {
            let ids = made.dataset.split(DEFAULT_NODE_TYPE, name).unwrap().unwrap();
            assert_eq!(meta["split_sizes"][format!("{name}_idx")].as_u64(), Some(ids.len() as u64));
        }
        seen += 1;
    }
    assert!(seen > 0, "GNARL_DATA holds no graph");
}
