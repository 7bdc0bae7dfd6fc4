//! Faults that fuzzing found: each of these manifests once ended a process.

use std::path::Path;

use gnarl_graph::IdWidth;
use gnarl_partition::{PartitionConfig, PartitionedDataset, Parts, partition_dataset};
use serde_json::{Value, json};

use crate::common::dataset;

/// A partition with buckets in two parts.
fn partition(dir: &Path) -> PartitionedDataset {
    let edges = (0..300u64).map(|i| (i * i % 40, i * 7 % 40)).collect();
    let nodes = [("author", 23), ("paper", 40)];
    let types = [("paper:cites:paper", edges)];
    let source = dataset(&dir.join("source"), IdWidth::U32, &nodes, &types);
    let config = PartitionConfig {
        algorithm: "random".into(),
        parts: Parts::Count(2),
        buckets: true,
        ..Default::default()
    };
    partition_dataset(&source, &config, &dir.join("parts")).unwrap().0
}

/// Changes a manifest.
fn change(path: &Path, edit: impl FnOnce(&mut Value)) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut manifest = serde_json::from_str(&text).unwrap();
    edit(&mut manifest);
    std::fs::write(path, manifest.to_string()).unwrap();
}

/// Readers index these lists by part, and search the ranges.
#[test]
fn lists_of_another_number_of_parts_are_refused() {
    type Edit = fn(&mut Value);
    let edits: [(&str, Edit); 6] = [
        ("impossible", |m| m["parts"] = json!(0)),
        ("impossible", |m| m["parts"] = json!(1u64 << 60)),
        ("part_counts", |m| m["part_counts"] = json!([])),
        ("ranges of 'author'", |m| m["node_types"][0]["ranges"] = json!([])),
        ("ranges of 'paper'", |m| m["node_types"][1]["ranges"] = json!([5, 20, 40])),
        ("ranges of 'paper'", |m| m["node_types"][1]["ranges"] = json!([0, 50, 40])),
    ];
    for (expected, edit) in edits {
        let dir = tempfile::tempdir().unwrap();
        let made = partition(dir.path());
        change(&made.dir().join("partition.json"), edit);
        let error = PartitionedDataset::open(made.dir()).unwrap_err().to_string();
        assert!(error.contains("partition.json") && error.contains(expected), "{error}");
    }
}

/// The number of buckets, its square, did not fit 64 bits.
#[test]
fn buckets_of_an_impossible_number_of_parts_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let made = partition(dir.path());
    change(&made.dir().join("buckets/buckets.json"), |m| m["parts"] = json!(1u64 << 40));
    let error = made.buckets().unwrap_err().to_string();
    assert!(error.contains("buckets.json: 1099511627776 parts"), "{error}");
    let types = [made.edge_types().unwrap()[0].triple.clone()];
    let error = made.bucket_files(&types).unwrap_err().to_string();
    assert!(error.contains("buckets.json: 1099511627776 parts"), "{error}");
}
