//! Small valid datasets, which damage begins with.

use std::path::Path;

use gnarl_common::Element;
use gnarl_common::npy::NpyWriter;
use gnarl_graph::import::{EdgeTable, Feature, NodeTable, NpyOptions, TableOptions, npy, tables};
use gnarl_graph::{Dataset, Triple};

use crate::scratch;

const NODES: u64 = 24;

fn column<T: Element>(path: &Path, row: &[u64], values: &[T]) {
    let mut writer = NpyWriter::<T>::create(path, row).expect("a file");
    writer.push(values).expect("a file");
    writer.finish().expect("a file");
}

/// The edges of a ring with chords.
fn ring() -> Vec<(u64, u64)> {
    let steps = [1, 5, 7];
    (0..NODES).flat_map(|node| steps.map(|step| (node, (node + step) % NODES))).collect()
}

/// A homogeneous graph of 24 nodes at `out`: features, labels, splits and times; edges with weights, times, features.
///
/// # Panics
/// If it cannot be written.
pub fn homogeneous(out: &Path) -> Dataset {
    let dir = scratch::folder();
    let path = |name: &str| dir.path().join(name);
    let edges = ring();
    crate::graph::write_edges(&path("edges.npy"), &edges);
    let nodes = || 0..NODES;
    let features: Vec<f32> = (0..NODES * 3).map(|at| at as f32 / 8.0).collect();
    column(&path("features.npy"), &[3], &features);
    column::<i32>(&path("labels.npy"), &[], &nodes().map(|v| v as i32 % 3).collect::<Vec<_>>());
    column::<i64>(&path("node-times.npy"), &[], &nodes().map(|v| v as i64).collect::<Vec<_>>());
    for (name, range) in [("train", 0..14), ("valid", 14..19), ("test", 19..NODES)] {
        column::<u64>(&path(name), &[], &range.collect::<Vec<_>>());
    }
    let each = || 0..edges.len();
    column::<f32>(&path("weights.npy"), &[], &each().map(|e| 1.0 + e as f32).collect::<Vec<_>>());
    column::<i64>(&path("times.npy"), &[], &each().map(|e| e as i64 % 9).collect::<Vec<_>>());
    column::<f32>(&path("edge.npy"), &[1], &each().map(|e| e as f32).collect::<Vec<_>>());
    let options = NpyOptions {
        features: Some(path("features.npy")),
        labels: Some(path("labels.npy")),
        times: Some(path("node-times.npy")),
        splits: ["train", "valid", "test"].map(|name| (name.into(), path(name))).into(),
        weights: Some(path("weights.npy")),
        edge_times: Some(path("times.npy")),
        edge_features: Some(path("edge.npy")),
        memory: 16 << 20,
        ..NpyOptions::new(path("edges.npy"))
    };
    npy(&options, out).expect("a dataset").dataset
}

/// A heterogeneous graph at `out`: users with features, items with classes by name and splits, and two edge types; ids are
/// texts.
///
/// # Panics
/// If it cannot be written.
pub fn heterogeneous(out: &Path) -> Dataset {
    let dir = scratch::folder();
    let path = |name: &str| dir.path().join(name);
    let mut users = String::from("id,age,size\n");
    let mut items = String::from("id,label,split\n");
    let mut buys = String::from("src,dst,weight,time\n");
    let mut likes = String::from("src,dst\n");
    for i in 0..10 {
        users += &format!("u{i},{},{}\n", i * 3, 10 - i);
        let split = ["train", "train", "valid", "test"][i % 4];
        items += &format!("i{i},{},{split}\n", ["red", "green"][i % 2]);
        for step in [1, 4] {
            buys += &format!("u{i},i{},{}.5,{}\n", (i + step) % 10, i, 20 - i);
            likes += &format!("i{i},i{}\n", (i * step + 1) % 10);
        }
    }
    for (name, text) in [("users", users), ("items", items), ("buys", buys), ("likes", likes)] {
        scratch::write(&path(&format!("{name}.csv")), text.as_bytes());
    }
    let triple = |text: &str| -> Triple { text.parse().expect("an edge type") };
    let mut users = NodeTable::new("user", path("users.csv"));
    users.features = ["age", "size"].map(Feature::from).into();
    let options = TableOptions {
        nodes: vec![users, NodeTable::new("item", path("items.csv"))],
        edges: vec![
            EdgeTable::new(triple("user:buys:item"), path("buys.csv")),
            EdgeTable::new(triple("item:likes:item"), path("likes.csv")),
        ],
        memory: 16 << 20,
        ..TableOptions::default()
    };
    tables(&options, out).expect("a dataset").dataset
}
